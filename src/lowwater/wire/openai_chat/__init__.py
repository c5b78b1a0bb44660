"""The OpenAI chat-completions format, which most compatible servers speak."""
