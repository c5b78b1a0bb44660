"""What later turns of a recorded session use of its tool results (ECONOMICS, "Losing information has a price too").

A use is an exact reference in an assistant's text or in the arguments of its calls that occurs in one earlier tool result
and in nothing else that came before: no other result, no text, no argument. So it counts once a session, and if the
result is gone, it is gone. Quotation marks and the word "error" mean a quote and an error in text; in arguments they are
mostly syntax, and only paths, identifiers and numbers count there.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from lowwater.values.message import Message
from lowwater.values.parts import ToolCall
from lowwater.values.references import Kind, names, references

_WORD = re.compile(r"\w")


class Elided(Struct, frozen=True, kw_only=True):
    """A tool result of a session: its call, its place among the calls of the model, and its text."""

    call: ToolCall
    turn: int
    text: str


class Use(Struct, frozen=True, kw_only=True):
    """A reference to a result, and how many calls of the model after it."""

    result: Elided
    kind: Kind
    text: str
    later: int


class _Piece(Struct, frozen=True, kw_only=True):
    """Where a text begins in the session's whole text; `result` if it is that of a tool."""

    start: int
    result: Elided | None


class Reading:
    """A session read once: its whole text in order, with the pieces it is made of."""

    def __init__(self, messages: Sequence[Message]) -> None:
        """Lay all text of `messages` end to end."""
        self._pieces: list[_Piece] = []
        self._texts: list[str] = []
        self._length = 0
        self._answers: list[tuple[int, int, Message]] = []
        calls: dict[str, tuple[int, ToolCall]] = {}
        turn = 0
        for message in messages:
            if message.role == "assistant":
                turn += 1
                self._answers.append((turn, self._length, message))
            for call in message.calls:
                calls[call.id] = (turn, call)
            for result in message.results:
                made, call = calls.get(result.call_id, (turn, _NO_CALL))
                self._add(result.text, Elided(call=call, turn=made, text=result.text))
            self._add("\n".join([message.text, *(_said(call) for call in message.calls)]))
        self._whole = "\0".join(self._texts)
        self._starts = [piece.start for piece in self._pieces]
        self.turns = turn

    def _add(self, text: str, result: Elided | None = None) -> None:
        self._pieces.append(_Piece(start=self._length, result=result))
        self._texts.append(text)
        self._length += len(text) + 1

    def uses(self) -> Iterator[Use]:
        """Yield the uses of results in the session, in order."""
        seen: set[str] = set()
        for turn, start, message in self._answers:
            for kind, text in _named(message):
                if len(text) < 3 or text in seen:
                    continue
                seen.add(text)
                result = self._only_result(text, start)
                if result is not None:
                    yield Use(result=result, kind=kind, text=text, later=turn - result.turn)

    def _only_result(self, text: str, before: int) -> Elided | None:
        at = find(text, self._whole, 0, before)
        if at < 0:
            return None
        index = bisect_right(self._starts, at) - 1
        result = self._pieces[index].result
        beyond = self._starts[index + 1]
        return None if result is None or find(text, self._whole, beyond, before) >= 0 else result

    def talk(self, until: int) -> str:
        """Return all text up to the answer of call `until`, that one included, but for the results of tools."""
        end = next((start for turn, start, _ in self._answers if turn > until), self._length)
        return "\n".join(
            text
            for piece, text in zip(self._pieces, self._texts, strict=True)
            if piece.result is None and piece.start < end
        )


_NO_CALL = ToolCall(id="", name="", arguments="{}")


def find(text: str, within: str, start: int, end: int) -> int:
    """Return where `text` occurs as whole words in `within[start:end]`, or -1."""
    first, last = _WORD.match(text[0]), _WORD.match(text[-1])
    at = within.find(text, start, end)
    while at >= 0:
        after = at + len(text)
        cut = (first and at > 0 and _WORD.match(within[at - 1])) or (
            last and after < len(within) and _WORD.match(within[after])
        )
        if not cut:
            return at
        at = within.find(text, at + 1, end)
    return -1


def _named(message: Message) -> Iterator[tuple[Kind, str]]:
    for reference in references(message.text):
        yield reference.kind, reference.text
    for call in message.calls:
        for value in _values(_arguments(call)):
            for reference in names(value):
                yield reference.kind, reference.text


def _said(call: ToolCall) -> str:
    return "\n".join([call.name, *_values(_arguments(call), keys=True)])


def _arguments(call: ToolCall) -> object:
    try:
        return msgspec.json.decode(call.arguments)
    except msgspec.MsgspecError:
        return call.arguments


def _values(value: object, *, keys: bool = False) -> Iterator[str]:
    """Yield the strings and numbers in a JSON value, the keys of objects too if wanted."""
    match value:
        case dict():
            for key, inner in value.items():
                if keys:
                    yield key
                yield from _values(inner, keys=keys)
        case list():
            for inner in value:
                yield from _values(inner, keys=keys)
        case None | bool():
            pass
        case _:
            yield str(value)
