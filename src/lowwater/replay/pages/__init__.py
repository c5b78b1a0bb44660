"""The HTML reports of audit and replay: one file each, which needs no network and holds no contents of messages."""
