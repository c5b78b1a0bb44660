"""What the provider's prompt cache holds, and where to mark a request for it."""
