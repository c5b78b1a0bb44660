"""What summarizers may see, and cleaning what they wrote: no secrets, no lone surrogates, no invented handles."""

import re
from collections.abc import Container, Iterable

from msgspec.structs import replace

from lowwater.core.messages import Message
from lowwater.core.secrets.redaction import conceal, conceal_json, conceal_message, conceal_parts
from lowwater.core.summary.request import CachedPrefix, SummaryRequest

NO_SUCH_MESSAGE = "[no such message]"
"""What replaces a handle of a message that the summary does not cover."""
_RANGE_END = r"(?:[-–—](?:lw:)?[0-9]+|\s?(?:-|–|—|to)\s?lw:\s?[0-9]+)?"
_HANDLE = re.compile(rf"(?<![\w:])lw:\s?[0-9]+{_RANGE_END}(?:,(?:lw:)?[0-9]+{_RANGE_END})*", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]+")
_LABEL_CHARS = 200


def shown_to_others(request: SummaryRequest) -> SummaryRequest:
    """Return the request as a summarizer may see it: without secrets if `redact`, which stays set.

    The messages lose the bytes they arrived in, which may contain the secrets that were removed from their parts.
    """
    if not request.redact:
        return request
    safe = concealed(request)
    newest = safe.newest_user
    return replace(
        safe,
        messages=tuple(map(_without_bytes, safe.messages)),
        newest_user=None if newest is None else _without_bytes(newest),
        redact=True,
    )


def _without_bytes(message: Message) -> Message:
    return Message(role=message.role, parts=message.parts, name=message.name)


def prefix_for_others(prefix: CachedPrefix) -> CachedPrefix:
    """Return the request sent last as anybody but its own provider may see it: without secrets, and the same if it has none."""
    text = prefix.body.decode("utf-8", "surrogateescape")
    safe = conceal_json(text)
    body = prefix.body if safe == text else safe.encode("utf-8", "surrogateescape")
    return replace(prefix, body=body, since=tuple(map(conceal_message, prefix.since)))


def concealed(request: SummaryRequest) -> SummaryRequest:
    """Return the request without secrets in what is to be summarised and with `redact` off; unchanged if it was off.

    The cached prefix stays byte for byte: the provider has seen it already, and its cache depends on it.
    """
    if not request.redact:
        return request
    return replace(
        request,
        messages=tuple(conceal_parts(message) for message in request.messages),
        previous=conceal(request.previous),
        focus=conceal(request.focus),
        instructions=conceal(request.instructions),
        newest_user=request.newest_user and conceal_parts(request.newest_user),
        redact=False,
    )


def whole_characters(text: str) -> str:
    """Return `text` without lone surrogates, which no provider and no store accepts.

    A lone surrogate becomes the replacement character; a pair becomes the character it encodes.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def as_label(text: str) -> str:
    """Return a name from outside as something that can be stored and printed on one line."""
    shown = "".join(character if character.isprintable() else " " for character in whole_characters(text))
    return shown[:_LABEL_CHARS]


def with_known_handles(text: str, known: Container[int]) -> str:
    """Return `text` without handles of messages that are not `known`, which a model may invent or quote.

    In a handle of several messages, the known ones stay.
    """

    def checked(found: "re.Match[str]") -> str:
        pieces = found[0].split(",")
        kept = [piece for piece in pieces if _all_known(_DIGITS.findall(piece), known)]
        if len(kept) == len(pieces):
            return found[0]
        handle = ",".join(kept)
        return handle if handle[:3].lower() == "lw:" else f"lw:{handle}" if handle else NO_SUCH_MESSAGE

    return _HANDLE.sub(checked, text)


def unknown_handles(text: str, known: Container[int]) -> bool:
    """Return whether a text contains a handle of a message that is not `known`."""
    return with_known_handles(text, known) != text


def _all_known(numbers: Iterable[str], known: Container[int]) -> bool:
    return all(len(number) <= 15 and int(number) in known for number in numbers)
