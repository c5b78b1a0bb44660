"""Responses usage: bytes to values; the figures of the chat format under other names."""

from lowwater.wire.openai_chat.usage import decode_report, decode_usage

__all__ = ["decode_report", "decode_usage"]
