"""Secrets in text, and text without them."""
