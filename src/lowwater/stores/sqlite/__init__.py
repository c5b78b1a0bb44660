"""The store in one SQLite file: several threads and processes at once, nothing to install."""
