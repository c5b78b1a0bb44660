"""Audit and replay of recorded sessions, and the cheapest schedule they could have had."""
