"""A recorded session as a course of token sizes, and what the client's own compactions cost and saved."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_at, nano_dollars
from lowwater.core.messages import Message, ToolCall, texts_of
from lowwater.core.tools import class_of
from lowwater.lab.audit.calls import SUMMARY_KIND, AuditedCall, Miss, is_expired, lifetime_after
from lowwater.lab.audit.findings import DayOf, Native
from lowwater.lab.course import Course, CourseTurn, elided_size, uses_to_expect
from lowwater.logs.recording import Recording

USUAL_RATIO = 0.25
"""Tokens per character, if a session does not reveal it."""
_PLACEHOLDER_TOKENS = 12
"""Tokens of the placeholder for a cleared result (a low estimate)."""
_SUMMARY_TOKENS = 3_000
"""The assumed size of a summary whose text is not recorded."""


class _Result(Struct, frozen=True, kw_only=True):
    characters: int
    chance: int


class _Piece(Struct, kw_only=True):
    """What one call added to the prompt, in characters."""

    text: int = 0
    results: list[_Result] = []

    @property
    def whole(self) -> int:
        return self.text + sum(result.characters for result in self.results)


class Sizes(Struct, frozen=True, kw_only=True):
    """A session's course, and its tokens per character."""

    course: Course
    ratio: float


def sizes_of(recording: Recording, calls: Sequence[AuditedCall], *, tail: int) -> Sizes:
    """Return the course of the calls with recorded prompt sizes, as it would be without the client's compactions.

    The growth of the prompt is the size of what was new; where the client compacted or dropped something, the size is estimated
    from characters. The part of the first prompt that no message accounts for is tools and system.
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
    """Yield what was new at each call; `answers` are the indexes of the calls' answers."""
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
        if recorded.kind != SUMMARY_KIND:
            new.text += characters(message) - sum(result.characters for result in results)


def _result(text: str, call: ToolCall | None) -> _Result:
    return _Result(
        characters=len(text), chance=0 if call is None else uses_to_expect(class_of(call), len(text))
    )


def _growth(before: AuditedCall, call: AuditedCall) -> int | None:
    if before.usage is None or call.usage is None or call.compaction is not None:
        return None
    grown = call.usage.prompt - before.usage.prompt
    return grown if grown >= 0 and call.model.name == before.model.name else None


def _gap(before: AuditedCall, call: AuditedCall) -> float:
    used = before.answered if before.answered is not None else before.asked
    return 0.0 if used is None or call.at is None else max(0.0, call.at - used)


def _ratio(pieces: Sequence[_Piece], growths: Sequence[int | None]) -> float:
    known = [
        (growth, piece.whole) for piece, growth in zip(pieces, growths, strict=True) if growth and piece.whole
    ]
    return sum(one for one, _ in known) / sum(other for _, other in known) if known else USUAL_RATIO


def _turn(piece: _Piece, growth: int | None, ratio: float, *, gap: float, output: int) -> CourseTurn:
    tokens = round(piece.whole * ratio) if growth is None else growth
    share = tokens / piece.whole if piece.whole else 0.0
    sizes = [int(result.characters * share) for result in piece.results]
    return CourseTurn(
        text=tokens - sum(sizes),
        results=sum(sizes),
        elided=sum(map(elided_size, sizes)),
        chance=sum(result.chance for result in piece.results),
        output=output,
        gap=gap,
    )


def natives_of(
    recording: Recording,
    calls: Sequence[AuditedCall],
    misses: Sequence[Miss | None],
    *,
    ratio: float,
    day_of: DayOf,
) -> Iterator[Native]:
    """Yield the client's compactions between calls with recorded prompt sizes; `ratio` is tokens per character."""
    metered = [at for at, call in enumerate(calls) if call.usage is not None]
    compacted = [order for order, at in enumerate(metered) if order and calls[at].compaction is not None]
    long = False
    for order, at in enumerate(metered):
        call = calls[at]
        if order in compacted and not call.copied:
            summaries = (later for later in compacted if later > order and _is_summary(calls[metered[later]]))
            served = [calls[later] for later in metered[order : next(summaries, len(metered))]]
            before = calls[metered[order - 1]]
            shift = _shift_of(recording, before, call, ratio)
            native = _native_of(before, served, misses[at], shift, turn=order, long=long)
            yield replace(native, day="" if native.at is None else day_of(native.at))
        if call.usage is not None:
            long = lifetime_after(call.usage, long=long)


class _Shift(Struct, frozen=True, kw_only=True):
    """Tokens that a compaction removed from the prompt, and tokens that a model wrote for it."""

    removed: int
    written: int = 0


def _is_summary(call: AuditedCall) -> bool:
    return call.compaction is not None and call.compaction.kind == "summary"


def _shift_of(recording: Recording, before: AuditedCall, call: AuditedCall, ratio: float) -> _Shift:
    """Return what a compaction removed: for a summary the difference of the prompts around it, for a prune what was cleared."""
    assert call.compaction is not None
    assert before.usage is not None
    assert call.usage is not None
    shrunk = max(0, before.usage.prompt - call.usage.prompt)
    if call.compaction.kind == "summary":
        return _Shift(removed=shrunk, written=_summary_tokens(recording, call, ratio))
    if call.compaction.removed is not None:
        return _Shift(removed=call.compaction.removed)
    cleared = set(call.compaction.cleared)
    sizes = [
        max(0, round(len(result.text) * ratio) - _PLACEHOLDER_TOKENS)
        for each in recording.messages[: call.index]
        for result in each.message.results
        if result.call_id in cleared
    ]
    return _Shift(removed=max(shrunk, sum(sizes)))


def _native_of(
    before: AuditedCall,
    served: Sequence[AuditedCall],
    miss: Miss | None,
    shift: _Shift,
    *,
    turn: int,
    long: bool,
) -> Native:
    call = served[0]
    assert call.compaction is not None
    assert before.usage is not None
    assert call.usage is not None
    expired = is_expired(before, call, long=long)
    rewritten = 0 if expired or miss is None else miss.cost
    saved = [_saved(each, shift.removed, was_warm=not expired if each is call else None) for each in served]
    asked: int | None = 0
    if _is_summary(call):
        asked = (
            _recorded_summary_cost(call)
            if call.others
            else _summary_cost(before, shift.written, expired=expired)
        )
    return Native(
        at=call.compaction.at if call.compaction.at is not None else call.at,
        trigger=call.compaction.trigger,
        call=turn,
        before=before.usage.prompt,
        after=call.usage.prompt,
        served=len(served),
        kind=call.compaction.kind,
        summary_cost=asked,
        summary_recorded=bool(call.others) and _is_summary(call),
        rewrite_cost=None if call.prices is None else rewritten,
        saved=_full_sum(saved),
    )


def _summary_tokens(recording: Recording, call: AuditedCall, ratio: float) -> int:
    assert call.compaction is not None
    behind = recording.messages[call.compaction.index : call.index]
    found = round(sum(characters(each.message) for each in behind if each.kind == SUMMARY_KIND) * ratio)
    return found or _SUMMARY_TOKENS


def _recorded_summary_cost(call: AuditedCall) -> int | None:
    """Return the cost of the calls recorded along with the one after a compaction: some clients record the summary there."""
    priced = [(usage, call.prices_of(usage)) for usage in call.others]
    return _full_sum([None if prices is None else cost_at(usage, prices) for usage, prices in priced])


def _summary_cost(before: AuditedCall, written: int, *, expired: bool) -> int | None:
    """Return the estimated cost of the summary, assuming it was requested on the cached prompt of the previous call."""
    if before.prices is None or before.usage is None:
        return None
    prompt = before.usage.prompt
    asked = Usage(uncached=prompt, output=written) if expired else Usage(cache_read=prompt, output=written)
    return cost_at(asked, before.prices)


def _saved(call: AuditedCall, removed: int, *, was_warm: bool | None) -> int | None:
    """Return what a call would have paid for the removed tokens: the read price if it read anything from the cache."""
    prices, usage = call.prices, call.usage
    if prices is None or usage is None:
        return None
    is_warm = usage.cache_read > 0 if was_warm is None else was_warm
    if is_warm:
        return nano_dollars(removed * prices.cache_read)
    long = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    written = usage.cache_write_long > usage.cache_write
    return nano_dollars(
        removed * (long if written else prices.cache_write if usage.cache_write else prices.input)
    )


def _full_sum(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
