"""What the cache rules say each call reads and writes, from the sizes and times of a session's prompts alone.

Each prompt is taken to continue the one before. Where a client compacted, or added tools, only the fixed start is left; where a prompt
is smaller than the one before, what stood before the user spoke last is. What the first call read lies outside the
session, in those that ran beside it, so it is taken as recorded unless somebody tells a start; so is the lifetime that
the client asks of the cache.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, Boundary, after_call, expected_usage
from lowwater.core.cache.layout import Block, Layout, Lifetime, chained
from lowwater.core.costs.prices import cost_at
from lowwater.replay.audit.audited import Foreseen
from lowwater.replay.audit.calls import Call
from lowwater.replay.audit.causes import lifetime_after, uses_cache

_MOST_BLOCKS = 48
"""Older blocks are joined, so that a long session costs no more a call than a short one."""


class Start(Struct, frozen=True, kw_only=True):
    """What a session begins with, in tokens."""

    fixed: int
    """The start of every prompt: the client's tools and system prompt."""
    read: int
    """What of its first prompt is in the cache."""
    slip: float = 0.0
    """The share of what a call inside of a turn should read behind the fixed start that it has to write anew, for no reason one knows."""


def foresee(calls: Sequence[Call], start: Start | None = None) -> tuple[Usage | None, ...]:
    """Return the input side of each call as foreseen, None where its prompt was not recorded."""
    session = _Session(start)
    return tuple(session.call(call, call.usage) if call.usage is not None else None for call in calls)


def foreseen_bill(calls: Sequence[Call], start: Start | None = None) -> Foreseen | None:
    """Return the input bill as foreseen and as recorded, copies left out; None if no price is known or no cache used."""
    pairs = list(_bills(calls, start)) if uses_cache(calls) else []
    if not pairs:
        return None
    return Foreseen(foreseen=sum(one for one, _ in pairs), recorded=sum(other for _, other in pairs))


def _bills(calls: Sequence[Call], start: Start | None) -> Iterator[tuple[int, int]]:
    for call, foreseen in zip(calls, foresee(calls, start), strict=True):
        prices, usage = call.prices, call.usage
        if prices is not None and usage is not None and foreseen is not None and not call.copied:
            yield (
                cost_at(foreseen, prices),
                cost_at(usage, prices) - cost_at(Usage(output=usage.output), prices),
            )


class _Session:
    """The prompt so far as blocks, and what the provider is believed to hold of it."""

    def __init__(self, start: Start | None) -> None:
        self._start = start
        self._blocks: list[Block] = []
        self._fixed = 0  # blocks at the start that a compaction leaves
        self._turn_began = 0  # the size of the prompt when the user spoke last
        self._belief = Belief()
        self._long = False
        self._count = 0

    def call(self, call: Call, usage: Usage) -> Usage:
        is_first = not self._blocks
        if is_first:
            self._long = lifetime_after(usage, long=False)
        start = self._start or Start(fixed=usage.cache_read, read=usage.cache_read)
        self._start = start
        self._begin(start, usage) if is_first else self._go_on(call, usage)
        layout = self._layout(call)
        at = call.at or 0.0
        if is_first:
            ends = zip(layout.blocks, layout.ends, strict=True)
            found = (Boundary(key=block.key, tokens=end, used=at) for block, end in ends if end <= start.read)
            self._belief = Belief(boundaries=tuple(found))
        expected = expected_usage(self._belief, layout, call.model, at)
        self._belief = after_call(self._belief, layout, call.model, call.answered or at).belief
        self._long = lifetime_after(usage, long=self._long)
        self._turn_began = usage.prompt if call.begins_turn else self._turn_began
        return expected if is_first or call.begins_turn else self._slipped(expected)

    def _begin(self, start: Start, usage: Usage) -> None:
        """Make the blocks those of the first prompt: its fixed start, what else is in the cache, and what is new."""
        for end in sorted({min(end, usage.prompt) for end in (start.fixed, start.read, usage.prompt)}):
            if end > self._size:
                self._add(end - self._size)
        self._fixed = 1 if start.fixed else 0

    def _go_on(self, call: Call, usage: Usage) -> None:
        """Make the blocks those of this prompt: what is left of the one before, and what is new."""
        if call.compaction is not None or call.loads_tools:
            del self._blocks[self._fixed :]
        elif usage.prompt < self._size:
            self._cut(min(self._turn_began, usage.prompt))
        if usage.prompt < self._size:
            self._cut(usage.prompt)
        if usage.prompt > self._size:
            self._add(usage.prompt - self._size)

    def _slipped(self, expected: Usage) -> Usage:
        """Return what is expected of a call, a little of it written anew."""
        assert self._start is not None
        slip = round(self._start.slip * max(0, expected.cache_read - self._start.fixed))
        if not slip:
            return expected
        written = "uncached"
        if expected.cache_write or expected.cache_write_long:
            written = "cache_write_long" if expected.cache_write_long else "cache_write"
        kept = replace(expected, cache_read=expected.cache_read - slip)
        return replace(kept, **{written: getattr(kept, written) + slip})

    @property
    def _size(self) -> int:
        return sum(block.tokens for block in self._blocks)

    def _cut(self, limit: int) -> None:
        while self._blocks and self._size > limit:
            self._blocks.pop()
        self._fixed = min(self._fixed, len(self._blocks))

    def _add(self, tokens: int) -> None:
        self._count += 1
        before = self._blocks[-1].key if self._blocks else b""
        (key,) = chained([self._count.to_bytes(8)], start=before)
        self._blocks.append(Block(key=key, tokens=tokens))
        if len(self._blocks) > _MOST_BLOCKS:
            older = self._blocks.pop(self._fixed)
            newer = self._blocks[self._fixed]
            self._blocks[self._fixed] = Block(key=newer.key, tokens=older.tokens + newer.tokens)

    def _layout(self, call: Call) -> Layout:
        """Return the prompt as the model's cache sees it: marked at its end and at that of its fixed start."""
        asked: Lifetime = "long" if self._long else "short"
        marked = {len(self._blocks) - 1, self._fixed - 1}
        start = call.model.name.encode()
        blocks = (
            Block(
                key=chained([start], start=block.key)[0],
                tokens=block.tokens,
                mark=asked if at in marked else "",
            )
            for at, block in enumerate(self._blocks)
        )
        return Layout(blocks=tuple(blocks))
