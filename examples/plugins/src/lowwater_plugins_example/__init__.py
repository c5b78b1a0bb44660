"""One worked example of everything that a package can add to Lowwater."""
