"""Where the tokens are and what they cost."""
