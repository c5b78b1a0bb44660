"""Digests: what is worth keeping of a text when the rest of it goes."""

from lowwater.compact.digest.write import digest

__all__ = ["digest"]
