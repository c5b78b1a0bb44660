"""HTML reports: one page with all it needs inside."""
