"""Other projects' compressors, each driven inside an environment of its own."""
