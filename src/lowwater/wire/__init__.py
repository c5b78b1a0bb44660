"""Provider formats: bytes to messages and back, one folder per format, untouched messages verbatim."""
