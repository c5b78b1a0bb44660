"""What a summary may be made from, and checks of its text: no secrets, whole characters, no invented handles."""

import re
from collections.abc import Container, Iterable

from msgspec.structs import replace

from lowwater.core.messages import Message
from lowwater.core.secrets.redaction import conceal, conceal_parts
from lowwater.core.summary.request import SummaryRequest


def shown_to_others(request: SummaryRequest) -> SummaryRequest:
    """Return the request as it is handed to whoever writes the summary: without secrets, if it asks for that.

    It still asks for it, so that a summarizer knows. Messages come without the bytes they came in, which may hold what
    their parts no longer do.
    """
    if not request.redact:
        return request
    told = concealed(request)
    newest = told.newest_user
    return replace(
        told,
        messages=tuple(map(_without_bytes, told.messages)),
        newest_user=None if newest is None else _without_bytes(newest),
        redact=True,
    )


def _without_bytes(message: Message) -> Message:
    return Message(role=message.role, parts=message.parts, name=message.name)


def concealed(request: SummaryRequest) -> SummaryRequest:
    """Return the request without secrets in what is to be condensed, if it asks for that; then it asks no more.

    What it rides on stays byte for byte: the provider has it already, and its cache depends on it.
    """
    if not request.redact:
        return request
    return replace(
        request,
        messages=tuple(conceal_parts(message) for message in request.messages),
        previous=conceal(request.previous),
        focus=conceal(request.focus),
        newest_user=request.newest_user and conceal_parts(request.newest_user),
        redact=False,
    )


_UPTO = r"(?:[-–—](?:lw:)?[0-9]+|\s?(?:-|–|—|to)\s?lw:\s?[0-9]+)?"
_HANDLE = re.compile(rf"(?<![\w:])lw:\s?[0-9]+{_UPTO}(?:,(?:lw:)?[0-9]+{_UPTO})*", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]+")
NO_SUCH_MESSAGE = "[no such message]"
"""What stands where a summary named a message that it does not stand for."""
_LONGEST_LABEL = 200


def whole_characters(text: str) -> str:
    """Return `text` without halves of characters, which no provider and no store accepts.

    A half is shown as the replacement character; two that belong together become the character that they are.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def as_label(text: str) -> str:
    """Return a name that somebody else chose such that it can be stored and printed on one line."""
    shown = "".join(character if character.isprintable() else " " for character in whole_characters(text))
    return shown[:_LONGEST_LABEL]


def with_known_handles(text: str, known: Container[int]) -> str:
    """Return `text` without handles of messages that are not among the `known`: a model may invent them, or quote some.

    Of several in one handle, those that are known stay.
    """

    def checked(found: "re.Match[str]") -> str:
        pieces = found[0].split(",")
        kept = [piece for piece in pieces if _all_known(_DIGITS.findall(piece), known)]
        if len(kept) == len(pieces):
            return found[0]
        told = ",".join(kept)
        return told if told[:3].lower() == "lw:" else f"lw:{told}" if told else NO_SUCH_MESSAGE

    return _HANDLE.sub(checked, text)


def unknown_handles(text: str, known: Container[int]) -> bool:
    """Tell whether a text holds a handle of a message that is not among the `known`."""
    return with_known_handles(text, known) != text


def _all_known(numbers: Iterable[str], known: Container[int]) -> bool:
    return all(len(number) <= 15 and int(number) in known for number in numbers)
