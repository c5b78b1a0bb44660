"""Sessions of a research agent that reads the web and takes notes."""
