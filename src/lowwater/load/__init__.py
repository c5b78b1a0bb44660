"""Getting things in from files and the environment."""
