"""What an HTTP status other than success means for a summary; a provider's words are read but never repeated."""

import re
from http import HTTPStatus
from types import MappingProxyType

from lowwater.core.api_calls import Usage
from lowwater.core.formats.refusals import context_length_in
from lowwater.errors import SummaryFailed

_ACCESS = frozenset({401, 402, 403, 407})
_BUSY = frozenset({408, 425, 429})
_BEYOND_CONTEXT = re.compile(r"context.{0,3}(?:length|size|window|limit)|maximum context", re.IGNORECASE)
_TOO_LONG = re.compile(rf"too long|too large|too many tokens|{_BEYOND_CONTEXT.pattern}", re.IGNORECASE)
_TOO_LARGE_FOR_ANY_MINUTE = re.compile(r"request too large", re.IGNORECASE)
_NO_MONEY = re.compile(r"insufficient_quota|credit balance is too low", re.IGNORECASE)
_STATUSES = MappingProxyType({"rate_limit_exceeded": 429, "server_error": 500, "error": 500})
"""What an error in an answer would have been as a status; any other is about the request."""
_READ = 20_000
"""Characters of an error that are looked at."""


def failure_of(status: int, body: bytes) -> SummaryFailed:
    """Return the failure; its text may be logged, for errors quote prompts and keys and nothing of them is in it."""
    return _failure(status, body[:_READ].decode("utf-8", "replace"), _named(status))


def failure_told(said: str, *, spent: Usage | None = None) -> SummaryFailed:
    """Return the failure of a call that was accepted and answered with an error: its code, a colon, and words."""
    status = _STATUSES.get(said.partition(":")[0], 400)
    failure = _failure(status, said[:_READ], "in its answer")
    return SummaryFailed(str(failure), failure.kind, spent=spent)


def _failure(status: int, said: str, named: str) -> SummaryFailed:
    if status in _ACCESS or (status in (400, 429) and _NO_MONEY.search(said)):
        return SummaryFailed(f"the provider gives no access ({named}): check the key and the account", "auth")
    if is_too_long(status, said):
        limit = context_length_in(said)
        window = f"the model's window of {limit:,} tokens" if limit else "what the model takes"
        return SummaryFailed(f"the request is longer than {window} ({named})", "refused")
    if status in _BUSY or status >= 500:
        return SummaryFailed(f"the provider is not able to answer now ({named})", "network")
    return SummaryFailed(
        f"the provider refuses the request ({named}): check model, format and base_url", "refused"
    )


def is_worth_retrying(status: int, failure: SummaryFailed) -> bool:
    """Tell whether the same request may succeed a little later."""
    return failure.kind == "network" and (status in _BUSY or status >= 500)


def is_too_long(status: int, said: str) -> bool:
    """Tell whether the request is what is wrong; a provider in trouble says "too large" of other things too."""
    if status in _BUSY:
        return _TOO_LARGE_FOR_ANY_MINUTE.search(said) is not None
    pattern = _BEYOND_CONTEXT if status >= 500 else _TOO_LONG
    return status == 413 or pattern.search(said) is not None


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
