"""Measurements; each module is a command that prints a Markdown table."""
