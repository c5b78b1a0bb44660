"""The OpenAI Responses format, in which one answer is several items."""
