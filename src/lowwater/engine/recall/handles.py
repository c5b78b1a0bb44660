"""Handles: the numbers of messages as placeholders, summaries and models write them."""

import re
from collections.abc import Sequence

from lowwater.errors import BadInput
from lowwater.values.entries import Numbers

_NUMBER = r"(?:lw:\s*)?([0-9]{1,15})"
_RANGE = re.compile(rf"\s*{_NUMBER}(?:\s*(?:-|–|—|\bto\b)\s*{_NUMBER})?\s*", re.IGNORECASE)
_ALONE = re.compile(r"\s*[0-9]{1,15}\s*")
_QUOTES = " \t\r\n[](){}<>\"'`.;:"


def handle_of(numbers: Sequence[Numbers]) -> str:
    """Return the handle of these messages: `lw:412`, `lw:12-408`, `lw:12-40,42-408`."""
    spans = [f"{span.first}-{span.last}" if span.last > span.first else f"{span.first}" for span in numbers]
    return f"lw:{','.join(spans)}"


def read_handle(text: str, *, of: int) -> tuple[Numbers, ...]:
    """Return the messages that a handle names, or raise BadInput if it is none or the session, which has `of`, lacks them.

    `412`, `lw:12-408`, `lw:12 to lw:408` and `[lw:12-40, 42-408]` are handles.
    """
    spans = [_span(piece, text) for piece in text.strip(_QUOTES).split(",")]
    for span in spans:
        if span.first > span.last:
            raise BadInput(f"lw:{span.first}-{span.last} runs backwards: write lw:{span.last}-{span.first}")
        beyond = 0 if span.first < 1 else span.last
        if not 1 <= beyond <= of:
            raise BadInput(f"there is no message lw:{beyond}: the session has {_counted(of)}")
    return _merged(spans)


def is_handle(text: str) -> bool:
    """Return whether a text is unmistakably a handle: `lw:` and numbers."""
    bare = text.strip(_QUOTES)
    return bare.lower().startswith("lw:") and all(_RANGE.fullmatch(piece) for piece in bare.split(","))


def names_messages(text: str) -> bool:
    """Return whether a text that may also be words to search for is meant as a handle; a number alone is."""
    return is_handle(text) or bool(_ALONE.fullmatch(text))


def _span(piece: str, text: str) -> Numbers:
    found = _RANGE.fullmatch(piece)
    if found is None:
        raise BadInput(
            f"{clipped(text)} is no handle: write a number such as lw:412, or a range such as lw:12-408"
        )
    first = int(found[1])
    return Numbers(first=first, last=int(found[2]) if found[2] else first)


def clipped(text: str, most: int = 60) -> str:
    """Return a text that somebody else wrote as a short quotation that is safe to show."""
    flat = "".join(character if character.isprintable() else " " for character in text[: 2 * most])
    flat = " ".join(flat.split())
    return f"“{flat}”" if len(flat) <= most and len(text) <= 2 * most else f"“{flat[:most]}…”"


def _counted(messages: int) -> str:
    return f"{messages:,}" if messages != 1 else "only one"


def _merged(spans: Sequence[Numbers]) -> tuple[Numbers, ...]:
    """Return the same messages in order, each once, in as few ranges as possible."""
    merged: list[Numbers] = []
    for span in sorted(spans, key=lambda span: span.first):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Numbers(first=merged[-1].first, last=max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return tuple(merged)
