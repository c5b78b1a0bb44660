"""Secrets in text: keys, tokens, passwords and private-key blocks, and text without them."""

from lowwater.values.secrets.conceal import conceal, has_concealed
from lowwater.values.secrets.messages import conceal_message, conceal_parts

__all__ = ["conceal", "conceal_message", "conceal_parts", "has_concealed"]
