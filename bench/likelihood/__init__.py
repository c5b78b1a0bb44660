"""How likely a recorded action still is under a compacted view, by a local open-weight model."""
