"""Hypothesis strategies for legal conversations: as bytes in each format, as values, as ledgers."""

from hypothesis import strategies as st

from lowwater.core.messages import Format
from lowwater.testing.strategies.ledgers import conversations, ledger_entries, ledgers, message_values
from lowwater.testing.strategies.transcripts import (
    anthropic_transcripts,
    openai_chat_transcripts,
    openai_responses_transcripts,
)

__all__ = ["conversations", "ledger_entries", "ledgers", "message_values", "messages", "transcripts"]


def transcripts(format: Format) -> st.SearchStrategy[list[bytes]]:
    """Return a strategy for legal lists of raw messages in `format`, with JSON in various spellings."""
    match format:
        case "anthropic":
            return anthropic_transcripts()
        case "openai_chat":
            return openai_chat_transcripts()
        case "openai_responses":
            return openai_responses_transcripts()


def messages(format: Format) -> st.SearchStrategy[bytes]:
    """Return a strategy for single raw messages in `format`, taken from legal transcripts."""
    return transcripts(format).flatmap(st.sampled_from)
