"""How many tokens messages, system prompts and tools are, and what the provider's usage teaches about it."""
