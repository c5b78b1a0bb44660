"""Concealing secrets in text and messages: each is replaced by `[redacted: KIND]`."""

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
    FoundSecret,
    addresses_in,
    assignments_in,
    blocks_in,
    commands_in,
    cookies_in,
    encoded_in,
    headers_in,
    is_secret_value,
    key_headers_in,
    kind_announced,
    secret_keys_in,
)

_MARK = "[redacted: "
_DOTTED_I = "\u0130"
"""İ, the only character whose lower case is two characters: positions in lowered text must match the text's."""
_JSON_STRING = re.compile(r'"(?P<inside>(?:[^"\\]++|\\.)*+)"(?P<names>\s*:)?', re.DOTALL)


def conceal(text: str) -> str:
    """Return `text` with its secrets replaced, in linear time; the same object if it has none.

    Concealing the result again changes nothing.
    """
    while found := secrets_in(text):
        text = "".join(_pieces(text, found))
    return text


def marker(kind: str) -> str:
    """Return what replaces a secret of this kind."""
    return f"{_MARK}{kind}]"


def secrets_in(text: str) -> list[FoundSecret]:
    """Return the secrets of a text in order, with overlapping ones merged."""
    lowered = text.replace(_DOTTED_I, "i").lower()
    every = [
        *blocks_in(text),
        *secret_keys_in(text),
        *addresses_in(text),
        *headers_in(text, lowered),
        *key_headers_in(text, lowered),
        *commands_in(text, lowered),
        *cookies_in(text, lowered),
        *encoded_in(text, lowered),
        *assignments_in(text, lowered),
    ]
    return list(_merged(every)) if every else []


def _merged(every: Iterable[FoundSecret]) -> Iterator[FoundSecret]:
    """Yield the secrets in order; overlapping ones become one, of the kind of the first."""
    current: FoundSecret | None = None
    for found in sorted(every, key=lambda each: (each.start, -each.end)):
        if current is not None and found.start < current.end:
            current = FoundSecret(current.start, max(current.end, found.end), current.kind)
            continue
        if current is not None:
            yield current
        current = found
    if current is not None:
        yield current


def _pieces(text: str, found: Iterable[FoundSecret]) -> Iterator[str]:
    at = 0
    for secret in found:
        yield text[at : secret.start]
        yield marker(secret.kind)
        at = secret.end
    yield text[at:]


def conceal_message(message: Message) -> Message:
    """Return the message without secrets anywhere in it; the same message if it has none.

    Tool arguments stay valid JSON. The bytes it arrived in lose their secrets too; if its parts changed, they are no
    longer exact and only supply the fields around the parts.
    """
    edited = conceal_parts(message)
    wire = message.wire and _conceal_wire(message.wire, exact=edited is message)
    if edited is message and wire is message.wire:
        return message
    return Message(role=edited.role, parts=edited.parts, name=edited.name, wire=wire)


def conceal_parts(message: Message) -> Message:
    """Return the message without secrets in its parts, for callers that read nothing else of it.

    The same message if its parts have none; otherwise one without the bytes it arrived in.
    """
    parts = tuple(_conceal_part(part) for part in message.parts)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return Message(role=message.role, parts=parts, name=message.name)


def conceal_json(text: str) -> str:
    """Return JSON text without secrets in its strings, which are also judged by the names of their fields.

    Everything else stays byte for byte; text that is not JSON is concealed as text.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return conceal(text)
    pieces: list[str] = []
    at, name = 0, ""
    for match in _JSON_STRING.finditer(text):
        value = json.loads(f'"{match["inside"]}"', strict=False)
        concealed = conceal(value)
        kind = kind_announced(name) if name and not text[at : match.start()].strip() else ""
        if kind and concealed is value and is_secret_value(kind, value):
            concealed = marker(kind)
        if concealed is not value:
            pieces += (text[at : match.start()], _as_json(concealed), match["names"] or "")
        else:
            pieces.append(text[at : match.end()])
        at, name = match.end(), value if match["names"] else ""
    return "".join([*pieces, text[at:]])


def _as_json(text: str) -> str:
    """Return text as a JSON string; a lone surrogate can only be written escaped."""
    return json.dumps(text, ensure_ascii=not _has_no_surrogates(text))


def _has_no_surrogates(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _conceal_wire(wire: Wire, *, exact: bool) -> Wire:
    raw = _conceal_bytes(wire.raw)
    if raw is wire.raw and exact:
        return wire
    return Wire(format=wire.format, raw=raw, exact=exact and wire.exact)


def _conceal_bytes(raw: bytes) -> bytes:
    text = raw.decode("utf-8", "surrogateescape")
    concealed = conceal_json(text)
    return raw if concealed == text else concealed.encode("utf-8", "surrogateescape")


def _conceal_part(part: AnyPart) -> AnyPart:
    if isinstance(part, ToolResult):
        return _conceal_result(part)
    extra = _conceal_bytes(part.extra) if part.extra else part.extra
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


def _conceal_result(result: ToolResult) -> ToolResult:
    parts: list[ResultPart] = []
    for part in result.parts:
        inner = _conceal_part(part)
        assert isinstance(inner, Text | Image | Document | Opaque)
        parts.append(inner)
    extra = _conceal_bytes(result.extra) if result.extra else result.extra
    if extra is result.extra and all(new is old for new, old in zip(parts, result.parts, strict=True)):
        return result
    return replace(result, parts=tuple(parts), extra=extra)
