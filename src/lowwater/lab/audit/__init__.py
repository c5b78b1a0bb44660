"""What recorded sessions cost, why their cache missed, and what compaction did or would have done about it."""
