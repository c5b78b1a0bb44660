"""Public parts for testing what is built on Lowwater: fakes, strategies, sessions, a strict provider."""
