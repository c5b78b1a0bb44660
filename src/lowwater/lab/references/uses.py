"""Finds what later answers of a recorded session use of its tool results.

Line numbers and page sizes are no uses: where a line stands can be looked up again, and changes with the next edit.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from lowwater.core.messages import Message, ToolCall
from lowwater.core.references import Reference, ReferenceKind, names, references

_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"\w")
_SHORTEST = 3
_NO_CALL = ToolCall(id="", name="", arguments="{}")
_PAGING = frozenset(
    "offset limit line lines start_line end_line line_start line_end view_range insert_line head_limit max_lines num_lines "
    "max_results page page_size timeout timeout_ms yield_time_ms max_output_tokens max_tokens -A -B -C".split()
)
"""Arguments that say which part of something to show, how much of it, or how long to wait."""
_PAGING_COMMAND = re.compile(
    r"\bsed\s+-n\s+(?:-e\s+)?[\"']?[\d,$;p ]+p\b|\b(?:head|tail)\s+(?:-n\s*|-c\s*|-)[+-]?\d+|\s-[ABCm]\s?\d+"
)
"""The part of a shell's command that says which lines to show."""
_BEFORE_LINE = re.compile(r"(?:^|\n)[ \t]*$")
_AFTER_LINE = re.compile(r"→|\t| ?\||[.:] |:$|$", re.MULTILINE)
_AFTER_FILE = re.compile(r"[\w/-]\.\w{1,8}[:-](?:\d+[:-])?$")
_NEAR = 100


def find_words(text: str, within: str, start: int = 0) -> int:
    """Return where `text` occurs as whole words in `within` from `start` on, or -1."""
    first, last = _LETTER.match(text[0]), _LETTER.match(text[-1])
    at = within.find(text, start)
    while at >= 0:
        after = at + len(text)
        is_cut = (first and at > 0 and _LETTER.match(within[at - 1])) or (
            last and after < len(within) and _LETTER.match(within[after])
        )
        if not is_cut:
            return at
        at = within.find(text, at + 1)
    return -1


class Occurrences:
    """Which of many texts have a reference; only those that have its longest word are read."""

    def __init__(self, texts: Sequence[str], wanted: Iterable[str]) -> None:
        """Note for the longest word of each wanted reference which texts have it; every text is read once."""
        self._texts = texts
        self._having: dict[str, list[int]] = defaultdict(list)
        keys = {_longest_word(text) for text in wanted}
        for index, text in enumerate(texts):
            for word in keys.intersection(_WORD.findall(text)):
                self._having[word].append(index)

    def of(self, text: str) -> Iterator[int]:
        """Yield the indexes of the texts that have a wanted reference, in order."""
        word = _longest_word(text)
        # Words of a reference are whole words wherever the reference is; one without words may be anywhere.
        candidates = self._having[word] if word else range(len(self._texts))
        for index in candidates:
            if find_words(text, self._texts[index]) >= 0:
                yield index


def _longest_word(text: str) -> str:
    return max(_WORD.findall(text), key=len, default="")


class Origin(Struct, frozen=True, kw_only=True):
    """The tool result, or the call, that a reference came from."""

    number: int
    """The number of its message in the ledger."""
    turn: int
    """Which of the session's answers called the tool, from 1."""
    call: ToolCall
    """What was called; nameless if that is not in the session."""
    text: str


class LaterUse(Struct, frozen=True, kw_only=True):
    """A reference in an answer to something that exactly one earlier result, or one earlier call, contains."""

    kind: ReferenceKind
    text: str
    number: int
    """The place of the answer's message in the session, from 1."""
    turn: int
    """Which of the session's answers it is, from 1."""
    origin: Origin

    @property
    def later(self) -> int:
        """The number of answers since the one that called the tool."""
        return self.turn - self.origin.turn


class _Pieces(Struct, frozen=True, kw_only=True):
    """All texts of a session in order, and for each the result it is, if it is one."""

    texts: list[str]
    origins: list[Origin | None]
    passed: list[Origin | None]
    """For each text the call whose arguments it is, if it is one."""
    starts: list[int]
    """For each message, how many texts came before it."""


def uses_of(messages: Sequence[Message], *, of_calls: bool = False) -> list[LaterUse]:
    """Return the uses of tool results in a session, in order; or those of what its calls passed to their tools."""
    pieces = _pieces(messages)
    found = list(_first_named(messages))
    occurrences = Occurrences(pieces.texts, (reference.text for _, reference in found))
    turns = _turns(messages)
    uses: list[LaterUse] = []
    for number, reference in found:
        only = _only_text(reference.text, occurrences, before=pieces.starts[number - 1])
        origin = None if only is None else (pieces.passed if of_calls else pieces.origins)[only]
        if origin is not None and not _is_line_number(reference, origin.text):
            use = LaterUse(
                kind=reference.kind,
                text=reference.text,
                number=number,
                turn=turns[number - 1],
                origin=origin,
            )
            uses.append(use)
    return uses


def argument_texts(
    call: ToolCall, *, keys: bool = False, without: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the strings and numbers in the arguments of a call, in order, the keys of objects too if wanted.

    The values of the keys in `without` are left out.
    """
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        arguments = call.arguments
    yield from _values(arguments, keys=keys, without=without)


def _pieces(messages: Sequence[Message]) -> _Pieces:
    pieces = _Pieces(texts=[], origins=[], passed=[], starts=[])
    calls: dict[str, tuple[int, ToolCall]] = {}
    for number, (turn, message) in enumerate(zip(_turns(messages), messages, strict=True), start=1):
        pieces.starts.append(len(pieces.texts))
        calls |= {call.id: (turn, call) for call in message.calls}
        for result in message.results:
            made, call = calls.get(result.call_id, (turn, _NO_CALL))
            pieces.texts.append(result.text)
            pieces.origins.append(Origin(number=number, turn=made, call=call, text=result.text))
            pieces.passed.append(None)
        pieces.texts.append(message.text)
        pieces.origins.append(None)
        pieces.passed.append(None)
        for call in message.calls:
            pieces.texts.append("\n".join((call.name, *argument_texts(call, keys=True))))
            pieces.origins.append(None)
            pieces.passed.append(Origin(number=number, turn=turn, call=call, text=call.arguments))
    return pieces


def _turns(messages: Sequence[Message]) -> list[int]:
    """Return for each message how many answers there are up to it."""
    turns: list[int] = []
    turn = 0
    for message in messages:
        turn += message.role == "assistant"
        turns.append(turn)
    return turns


def _first_named(messages: Sequence[Message]) -> Iterator[tuple[int, Reference]]:
    """Yield each reference where an answer makes it first, with the number of the answer's message."""
    seen: set[str] = set()
    for number, message in enumerate(messages, start=1):
        if message.role != "assistant":
            continue
        for reference in _named(message):
            if len(reference.text) >= _SHORTEST and reference.text not in seen:
                seen.add(reference.text)
                yield number, reference


def _named(message: Message) -> Iterator[Reference]:
    yield from references(message.text)
    for call in message.calls:
        for value in argument_texts(call, without=_PAGING):
            yield from names(_PAGING_COMMAND.sub(" ", value))


def _is_line_number(reference: Reference, text: str) -> bool:
    """Return whether a number stands in `text` only before a line, as its number, or behind the name of a file."""
    if reference.kind != "number" or not reference.text.isdigit():
        return False
    at = find_words(reference.text, text)
    while at >= 0:
        end = at + len(reference.text)
        before = text[max(0, at - _NEAR) : at]
        leads_line = _BEFORE_LINE.search(before) and _AFTER_LINE.match(text, end)
        if not leads_line and not _AFTER_FILE.search(before):
            return False
        at = find_words(reference.text, text, end)
    return True


def _only_text(text: str, occurrences: Occurrences, *, before: int) -> int | None:
    """Return which text has it, if no other earlier one does."""
    earlier = (index for index in occurrences.of(text) if index < before)
    only = next(earlier, None)
    return None if only is None or next(earlier, None) is not None else only


def _values(value: object, *, keys: bool, without: frozenset[str]) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                if keys:
                    yield key
                if key not in without:
                    yield from _values(inner, keys=keys, without=without)
        case list():
            for inner in value:
                yield from _values(inner, keys=keys, without=without)
        case None | bool():
            pass
        case _:
            yield str(value)
