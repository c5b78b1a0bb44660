"""The Messages API: its rules, its thinking signatures, its answers."""
