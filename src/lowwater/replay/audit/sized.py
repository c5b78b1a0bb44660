"""A recorded session as a course by the sizes its provider reported: without a tokenizer, in the model's own tokens."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from lowwater.core.messages import Message, ToolCall, texts_of
from lowwater.core.tools import class_of
from lowwater.logs.recording import Recording
from lowwater.replay.audit.calls import SUMMARY, Call
from lowwater.replay.course import Course, Turn
from lowwater.replay.recorded import elided_size, uses_to_expect

USUAL_RATIO = 0.25
"""Tokens per character where a session does not tell."""


class _Result(Struct, frozen=True, kw_only=True):
    characters: int
    chance: int


class _Piece(Struct, kw_only=True):
    """What was new at one call, in characters."""

    text: int = 0
    results: list[_Result] = []

    @property
    def whole(self) -> int:
        return self.text + sum(result.characters for result in self.results)


class Sizes(Struct, frozen=True, kw_only=True):
    """A session's course, and how many tokens a character of it is."""

    course: Course
    ratio: float


def sizes_of(recording: Recording, calls: Sequence[Call], *, tail: int) -> Sizes:
    """Return the course of the calls whose prompts were recorded, as it would be without the client's compactions.

    A prompt that grew tells what was new; where a client compacted or dropped something, the characters tell. Of the
    first prompt, what no message shows is tools and system.
    """
    metered = [call for call in calls if call.usage is not None]
    if not metered:
        return Sizes(course=Course(name=recording.id, fixed=0, tail=tail, turns=()), ratio=USUAL_RATIO)
    pieces = list(_pieces(recording, {call.index for call in metered}))
    growths = [None, *(_growth(before, call) for before, call in pairwise(metered))]
    ratio = _ratio(pieces, growths)
    gaps = [0.0, *(_gap(before, call) for before, call in pairwise(metered))]
    turns = [
        _turn(piece, growth, ratio, gap=gap, output=call.output)
        for piece, growth, gap, call in zip(pieces, growths, gaps, metered, strict=True)
    ]
    first = metered[0].usage.prompt if metered[0].usage else 0
    fixed = max(0, first - turns[0].whole)
    return Sizes(course=Course(name=recording.id, fixed=fixed, tail=tail, turns=tuple(turns)), ratio=ratio)


def characters(message: Message) -> int:
    """Return the length of all text in a message."""
    return sum(map(len, texts_of(message)))


def _pieces(recording: Recording, answers: set[int]) -> Iterator[_Piece]:
    """Yield what was new at each of the calls that gave the `answers`."""
    known: dict[str, ToolCall] = {}
    new = _Piece()
    for index, recorded in enumerate(recording.messages):
        message = recorded.message
        if index in answers:
            yield new
            new = _Piece()
        known |= {call.id: call for call in message.calls}
        results = [_result(result.text, known.get(result.call_id)) for result in message.results]
        new.results += results
        if recorded.kind != SUMMARY:
            new.text += characters(message) - sum(result.characters for result in results)


def _result(text: str, call: ToolCall | None) -> _Result:
    return _Result(
        characters=len(text), chance=0 if call is None else uses_to_expect(class_of(call), len(text))
    )


def _growth(before: Call, call: Call) -> int | None:
    if before.usage is None or call.usage is None or call.compaction is not None:
        return None
    grown = call.usage.prompt - before.usage.prompt
    return grown if grown >= 0 and call.model.name == before.model.name else None


def _gap(before: Call, call: Call) -> float:
    used = before.answered if before.answered is not None else before.asked
    return 0.0 if used is None or call.at is None else max(0.0, call.at - used)


def _ratio(pieces: Sequence[_Piece], growths: Sequence[int | None]) -> float:
    told = [
        (growth, piece.whole) for piece, growth in zip(pieces, growths, strict=True) if growth and piece.whole
    ]
    return sum(one for one, _ in told) / sum(other for _, other in told) if told else USUAL_RATIO


def _turn(piece: _Piece, growth: int | None, ratio: float, *, gap: float, output: int) -> Turn:
    tokens = round(piece.whole * ratio) if growth is None else growth
    share = tokens / piece.whole if piece.whole else 0.0
    sizes = [int(result.characters * share) for result in piece.results]
    return Turn(
        text=tokens - sum(sizes),
        results=sum(sizes),
        elided=sum(map(elided_size, sizes)),
        chance=sum(result.chance for result in piece.results),
        output=output,
        gap=gap,
    )
