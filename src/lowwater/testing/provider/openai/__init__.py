"""The Chat Completions API: its rules and its answers."""
