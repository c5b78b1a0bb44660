"""Lowwater inside other people's agents; each module needs its framework, and nothing is imported before it is asked for."""
