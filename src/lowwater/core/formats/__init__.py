"""Provider formats: bytes to messages and back, untouched messages byte for byte."""
