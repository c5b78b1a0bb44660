"""What a call and a compaction cost, and when a purchase pays: pure arithmetic."""
