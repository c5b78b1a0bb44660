"""Recordings of other programs, whatever they wrote them as."""
