"""Sessions of a coding agent in a small simulated repository."""
