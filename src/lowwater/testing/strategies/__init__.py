"""Hypothesis strategies for legal conversations: as bytes in each format, as values, as ledgers."""

from hypothesis import strategies as st

from lowwater.core.messages import Format
from lowwater.testing.strategies.anthropic import anthropic_transcripts
from lowwater.testing.strategies.ledger import ledger_entries, ledgers
from lowwater.testing.strategies.openai_chat import openai_chat_transcripts
from lowwater.testing.strategies.openai_responses import openai_responses_transcripts
from lowwater.testing.strategies.values import conversations, message_values

__all__ = ["conversations", "ledger_entries", "ledgers", "message_values", "messages", "transcripts"]


def transcripts(format: Format) -> st.SearchStrategy[list[bytes]]:
    """Return a strategy for legal lists of raw messages in `format`, in all the spellings JSON has."""
    match format:
        case "anthropic":
            return anthropic_transcripts()
        case "openai_chat":
            return openai_chat_transcripts()
        case "openai_responses":
            return openai_responses_transcripts()


def messages(format: Format) -> st.SearchStrategy[bytes]:
    """Return a strategy for single raw messages in `format`: any of a legal transcript."""
    return transcripts(format).flatmap(st.sampled_from)
