"""Checks whether a provider would accept a request, without sending it anywhere."""

from typing import Any

from lowwater.core.messages import Format
from lowwater.testing.provider.anthropic import Signer
from lowwater.testing.provider.anthropic import rules as messages_rules
from lowwater.testing.provider.openai import rules as chat_rules
from lowwater.testing.provider.prompt import (
    ReceivedRequest,
    Refusal,
    RequestRule,
    Sealing,
    first_refusal,
    quarter,
)
from lowwater.testing.provider.responses_api import ResponseLog
from lowwater.testing.provider.responses_api import rules as responses_rules

_HEADERS = {
    "x-api-key": "key",
    "authorization": "Bearer key",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": "compact-2026-09-04,compact-2026-01-12,thinking-binding-controls-2026-08-01",
}
# Rules about what a provider has signed or stored itself: a body alone cannot be checked against them.
_SIGNED = frozenset({"thinking_unmodified", "thinking_signed", "thinking_bound", "block_signed"})
_REMEMBERED = frozenset({"sealed_here", "references_known"})
_ENDLESS = 1 << 40

_RULES: dict[Format, tuple[RequestRule, ...]] = {
    "anthropic": tuple(rule for rule in messages_rules(Signer(b"")) if rule.__name__ not in _SIGNED),
    "openai_chat": chat_rules(),
    "openai_responses": tuple(
        rule for rule in responses_rules(ResponseLog(), Sealing(b"")) if rule.__name__ not in _REMEMBERED
    ),
}


def refusal_of(body: dict[str, Any], format: Format) -> Refusal | None:
    """Return the first rule that a request body breaks, or None; size and signatures are not checked."""
    incoming = ReceivedRequest(headers=_HEADERS, size=0, body=body, context_length=_ENDLESS, count=quarter)
    return first_refusal(_RULES[format], incoming)
