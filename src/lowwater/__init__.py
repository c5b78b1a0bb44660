"""Lowwater keeps a long LLM-agent conversation inside the model's window at the lowest total cost."""

__all__: list[str] = []
