"""The pure part: no clock, no randomness, no I/O; the standard library and msgspec only."""
