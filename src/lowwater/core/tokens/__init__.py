"""How many tokens messages, system prompts and tools are, and what reported usage teaches about it."""
