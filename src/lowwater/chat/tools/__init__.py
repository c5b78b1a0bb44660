"""The tools of the reference agent: shell, files, search, a to-do list and a memory."""
