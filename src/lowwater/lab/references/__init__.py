"""Future-reference recall: what later answers of a session use, and whether a view still has it."""
