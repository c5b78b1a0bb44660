"""A chat completion put together from the chunks it was streamed in."""

from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct

from lowwater.errors import BadInput
from lowwater.wire.reading import read_fields, read_json, read_plain, write_array, write_json, write_object

Fields = dict[str, Any]

_DONE = b"[DONE]"
_NULL = b"null"
_TEXTS = frozenset({"content", "refusal", "reasoning_content", "reasoning"})
"""Fields of a delta that come in pieces; of any other the last one counts."""
_LISTS = frozenset({"annotations", "reasoning_details"})
_AROUND = frozenset({"choices", "object", "error"})


class _Choice(Struct):
    index: int = 0
    delta: Raw = Raw(_NULL)
    finish_reason: str | None = None

    def said(self) -> Fields:
        """Return the fields of its delta; numbers that no float holds are no reason to lose an answer."""
        told = read_plain(bytes(self.delta)) or {}
        if not isinstance(told, dict):
            raise BadInput("the delta of a choice is no object")
        return told


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    error: Raw = Raw(_NULL)


class _Error(Struct, frozen=True):
    message: str = ""
    type: str | None = None
    code: Any = None


class _Call:
    """A tool call that grows."""

    def __init__(self) -> None:
        self.fields: Fields = {}
        self._pieces: dict[str, dict[str, list[str]]] = {}

    def add(self, piece: Fields) -> None:
        for name, said in piece.items():
            if name in ("function", "custom") and isinstance(said, dict):
                for inner, text in said.items():
                    if isinstance(text, str):
                        self._pieces.setdefault(name, {}).setdefault(inner, []).append(text)
            elif name != "index" and said is not None and not self.fields.get(name):
                self.fields[name] = said

    def whole(self) -> Fields:
        said = {
            name: {key: "".join(texts) for key, texts in inner.items()}
            for name, inner in self._pieces.items()
        }
        kind = "custom" if "custom" in said else "function"
        begun = {"id": "", "type": kind, kind: {}}
        whole: Fields = begun | self.fields | said
        return whole | {kind: _written(kind) | whole[kind]}


class _Message:
    """The message of one choice, and why it ended."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._fields: Fields = {"role": "assistant", "content": None}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, _Call] = {}

    def add(self, delta: Fields) -> None:
        for name, said in delta.items():
            if name == "tool_calls":
                self._add_calls(said)
            elif name in _TEXTS and isinstance(said, str):
                self._texts.setdefault(name, []).append(said)
            elif name in _LISTS and isinstance(said, list):
                self._fields[name] = [*self._fields.get(name, []), *said]
            elif said is not None or name not in self._fields:
                self._fields[name] = said

    def whole(self) -> Fields:
        message = self._fields | {name: "".join(pieces) for name, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [self._calls[at].whole() for at in sorted(self._calls)]
        return message

    def _add_calls(self, pieces: object) -> None:
        for piece in _objects(pieces):
            at = piece.get("index")
            if not isinstance(at, int):  # who leaves it out sends calls whole, or one after the other
                at = len(self._calls) if piece.get("id") else max(self._calls, default=0)
            self._calls.setdefault(at, _Call()).add(piece)


class StreamedCompletion:
    """The answer of one call, with all its choices."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_begun = False
        self.error = ""
        self._around: dict[str, bytes] = {}
        self._choices: dict[int, _Message] = {}

    def take(self, event: bytes) -> None:
        """Add one chunk; of the fields around the choices the last that is not null counts."""
        if event.strip() == _DONE:
            self.is_done = True
            return
        chunk = read_json(event, _Chunk)
        if bytes(chunk.error) != _NULL:
            self.error = _said(bytes(chunk.error))
            return
        fields = read_fields(event)
        self._around |= {name: raw for name, raw in fields.items() if name not in _AROUND and raw != _NULL}
        for choice in chunk.choices or []:
            message = self._choices.setdefault(choice.index, _Message())
            delta = choice.said()
            message.add(delta)
            self.has_begun = self.has_begun or choice.finish_reason is not None or _says_something(delta)
            message.finish_reason = choice.finish_reason or message.finish_reason

    def is_whole(self) -> bool:
        """Some servers close without the end mark; then every choice has to have said why it ended."""
        return bool(self._choices) and all(message.finish_reason for message in self._choices.values())

    def usage(self) -> bytes:
        """Return the usage told so far as JSON; empty if none was."""
        return self._around.get("usage", b"")

    def answer(self) -> bytes:
        """Return what came so far as a chat completion; empty if nothing did."""
        if not self._choices:
            return b""
        choices = [
            write_json({"index": at, "message": message.whole(), "finish_reason": message.finish_reason})
            for at, message in sorted(self._choices.items())
        ]
        return write_object(self._around | {"object": b'"chat.completion"', "choices": write_array(choices)})


def _says_something(delta: Fields) -> bool:
    """Return whether there is more in a chunk than the role of who will speak."""
    return any(value for name, value in delta.items() if name != "role")


def _objects(told: object) -> Iterator[Fields]:
    yield from (one for one in (told if isinstance(told, list) else []) if isinstance(one, dict))


def _written(kind: str) -> Fields:
    return {"name": "", "arguments" if kind == "function" else "input": ""}


def _said(raw: bytes) -> str:
    try:
        error = read_json(raw, _Error)
    except BadInput:
        return f"error: {raw.decode(errors='replace')[:200]}"
    return f"{error.type or error.code or 'error'}: {error.message}"
