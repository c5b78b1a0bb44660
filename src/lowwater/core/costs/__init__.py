"""What a call, a rewrite and waiting cost."""
