"""The built-in scripted model: everything can be tried without a key and without a network."""
