"""Finding secrets in text and messages, and replacing them."""
