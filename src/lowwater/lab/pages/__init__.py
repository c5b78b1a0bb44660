"""HTML reports, each in one file that needs no network."""
