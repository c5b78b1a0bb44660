"""Text and messages without their secrets: each stands there as `[redacted: KIND]`."""

import json
import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Wire,
)
from lowwater.core.secrets.detection import (
    Found,
    addresses_in,
    assignments_in,
    blocks_in,
    commands_in,
    cookies_in,
    encoded_in,
    headers_in,
    is_kept_secret,
    key_headers_in,
    keys_in,
    kind_announced,
)

_MARK = "[redacted: "
_LONGER = "\u0130"
"""The only character whose lower case is two characters."""


def conceal(text: str) -> str:
    """Return `text` with its secrets replaced, in time that grows with its length; the same text if it has none.

    What was concealed once stays as it is.
    """
    while found := secrets_in(text):
        text = "".join(_pieces(text, found))
    return text


def has_concealed(text: str) -> bool:
    """Tell whether a secret was concealed in a text."""
    return _MARK in text


def marker(kind: str) -> str:
    """Return what stands for a secret of a kind."""
    return f"{_MARK}{kind}]"


def secrets_in(text: str) -> list[Found]:
    """Return where the secrets of a text stand, in order; those that overlap are one."""
    lowered = text.replace(_LONGER, "i").lower()
    every = [
        *blocks_in(text),
        *keys_in(text),
        *addresses_in(text),
        *headers_in(text, lowered),
        *key_headers_in(text, lowered),
        *commands_in(text, lowered),
        *cookies_in(text, lowered),
        *encoded_in(text, lowered),
        *assignments_in(text, lowered),
    ]
    return list(_joined(every)) if every else []


def _joined(every: Iterable[Found]) -> Iterator[Found]:
    """Yield what was found, in order; of overlapping ones the first names the kind."""
    current: Found | None = None
    for found in sorted(every, key=lambda each: (each.start, -each.end)):
        if current is not None and found.start < current.end:
            current = Found(current.start, max(current.end, found.end), current.kind)
            continue
        if current is not None:
            yield current
        current = found
    if current is not None:
        yield current


def _pieces(text: str, found: Iterable[Found]) -> Iterator[str]:
    at = 0
    for secret in found:
        yield text[at : secret.start]
        yield marker(secret.kind)
        at = secret.end
    yield text[at:]


_STRING = re.compile(r'"(?P<inside>(?:[^"\\]++|\\.)*+)"(?P<names>\s*:)?', re.DOTALL)


def conceal_message(message: Message) -> Message:
    """Return the message without secrets anywhere in it; the same message if it has none.

    Tool arguments stay JSON. The bytes it came in lose their secrets too; once parts differ they only supply the fields
    around them.
    """
    edited = conceal_parts(message)
    wire = message.wire and _concealed_wire(message.wire, exact=edited is message)
    if edited is message and wire is message.wire:
        return message
    return Message(role=edited.role, parts=edited.parts, name=edited.name, wire=wire)


def conceal_parts(message: Message) -> Message:
    """Return the message without secrets in its parts, for those who read nothing else of it.

    The same message if its parts have none; else one without the bytes it came in.
    """
    parts = tuple(_concealed(part) for part in message.parts)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return Message(role=message.role, parts=parts, name=message.name)


def conceal_json(text: str) -> str:
    """Return JSON text without secrets in its strings, judged also by the names they stand under.

    Everything else stays byte for byte; text that is no JSON is concealed as text.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return conceal(text)
    pieces: list[str] = []
    at, name = 0, ""
    for match in _STRING.finditer(text):
        said = json.loads(f'"{match["inside"]}"', strict=False)
        concealed = conceal(said)
        kind = kind_announced(name) if name and not text[at : match.start()].strip() else ""
        if kind and concealed is said and is_kept_secret(kind, said):
            concealed = marker(kind)
        if concealed is not said:
            pieces += (text[at : match.start()], _written(concealed), match["names"] or "")
        else:
            pieces.append(text[at : match.end()])
        at, name = match.end(), said if match["names"] else ""
    return "".join([*pieces, text[at:]])


def _written(text: str) -> str:
    """Return text as a JSON string; half a character can only be written escaped."""
    return json.dumps(text, ensure_ascii=not _is_whole(text))


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _concealed_wire(wire: Wire, *, exact: bool) -> Wire:
    raw = _concealed_bytes(wire.raw)
    if raw is wire.raw and exact:
        return wire
    return Wire(format=wire.format, raw=raw, exact=exact and wire.exact)


def _concealed_bytes(raw: bytes) -> bytes:
    text = raw.decode("utf-8", "surrogateescape")
    concealed = conceal_json(text)
    return raw if concealed == text else concealed.encode("utf-8", "surrogateescape")


def _concealed(part: AnyPart) -> AnyPart:
    if isinstance(part, ToolResult):
        return _concealed_result(part)
    extra = _concealed_bytes(part.extra) if part.extra else part.extra
    match part:
        case Text() | Thinking():
            text = conceal(part.text)
            return (
                part if text is part.text and extra is part.extra else replace(part, text=text, extra=extra)
            )
        case ToolCall():
            arguments = conceal_json(part.arguments)
            same = arguments == part.arguments and extra is part.extra
            return part if same else replace(part, arguments=arguments, extra=extra)
        case Opaque():
            body = conceal_json(part.body)
            return part if body == part.body else replace(part, body=body)
        case Image() | Document():
            data = part.data if part.source == "base64" else conceal(part.data)
            if isinstance(part, Document) and (title := conceal(part.title)) is not part.title:
                return replace(part, data=data, title=title, extra=extra)
            same = data is part.data and extra is part.extra
            return part if same else replace(part, data=data, extra=extra)


def _concealed_result(result: ToolResult) -> ToolResult:
    parts: list[ResultPart] = []
    for part in result.parts:
        inner = _concealed(part)
        assert isinstance(inner, Text | Image | Document | Opaque)
        parts.append(inner)
    extra = _concealed_bytes(result.extra) if result.extra else result.extra
    if extra is result.extra and all(new is old for new, old in zip(parts, result.parts, strict=True)):
        return result
    return replace(result, parts=tuple(parts), extra=extra)
