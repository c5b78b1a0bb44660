"""Source files in several languages, made up line by line."""
