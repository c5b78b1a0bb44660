"""What the core is given from files, the environment and other packages."""
