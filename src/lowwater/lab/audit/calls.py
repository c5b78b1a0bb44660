"""The calls of a recording: the usage that the cache rules predict for each, and why a call missed the cache."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import (
    Belief,
    Block,
    Boundary,
    Layout,
    MarkLifetime,
    after_call,
    chained,
    chance_alive,
    expected_usage,
)
from lowwater.core.costs.prices import cost_at, nano_dollars
from lowwater.core.models.model import MarkedPrefixes, Model, Prices
from lowwater.core.models.registry import Registry
from lowwater.lab.audit.findings import Cause, Foreseen
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording

SUMMARY_KIND = "compact_summary"
_TOOL_SEARCH = "ToolSearch"
"""Claude Code's tool by which a model loads the definitions of tools that it knows only by name."""
_KEY_BYTES = 8
SLACK_TOKENS, SLACK_SHARE = 1_024, 0.01
"""A shortfall up to this size is no miss: it comes from the provider's boundaries (steps, marks, the newest few tokens)."""
_ALIVE = 0.5
_MAX_BLOCKS = 48
"""Older blocks are merged, so that a call of a long session takes no longer than one of a short session."""


class ModelPrices:
    """Finds models with the prices of a day, and caches them: a log names the same few models many times."""

    def __init__(self, load: Callable[[date | None], Registry] | None = None) -> None:
        self._load = load or (lambda day: load_registry(as_of=day))
        self._registries: dict[date | None, Registry] = {}
        self._models: dict[tuple[str, date | None], Model] = {}

    def model(self, name: str, at: float | None) -> Model:
        """Return the model called `name` with the prices of the day of `at`; with the registry's own if `at` is None."""
        day = None if at is None else datetime.fromtimestamp(at, tz=UTC).date()
        found = self._models.get((name, day))
        if found is None:
            registry = self._registries.get(day)
            if registry is None:
                registry = self._registries[day] = self._load(day)
            found = self._models[name, day] = registry.find(name)
        return found


class AuditedCall(Struct, frozen=True, kw_only=True):
    """One call to a model."""

    index: int
    """The index of its answer among the messages."""
    model: Model
    """With the prices of the day of the call."""
    usage: Usage | None
    """None if no prompt size was recorded; the call then has no price either."""
    output: int = 0
    others: tuple[Usage, ...] = ()
    """Usage of calls made along with it, for a summary for example."""
    at_list_price: bool = True
    asked: float | None = None
    answered: float | None = None
    begins_turn: bool = False
    """Whether a user message came right before it."""
    loads_tools: bool = False
    """Whether it is the first call after a tool search, for which Claude Code extends the list of tools."""
    compaction: NativeCompaction | None = None
    """The client's own compaction between the previous call and this one."""
    keys: tuple[bytes, ...] = ()
    """Keys that identify the call in other files: by its id, and by its time and usage; empty if neither is recorded."""
    made_by: str = ""
    """The session that made the call, if this one only repeats it."""
    copied: bool = False
    """Whether an earlier file has it or another session made it; copies are not counted."""

    @property
    def at(self) -> float | None:
        """The time of the request, or of the answer if that is all that is known."""
        return self.answered if self.asked is None else self.asked

    @property
    def prices(self) -> Prices | None:
        """The prices it was billed at; None if unknown."""
        return None if self.usage is None else self.prices_of(self.usage)

    @property
    def billed(self) -> tuple[Usage, ...]:
        """All usage billed for it, its own first."""
        return self.others if self.usage is None else (self.usage, *self.others)

    @property
    def cost(self) -> int | None:
        """What all of its usage cost; None if a price or its prompt size is unknown."""
        if self.usage is None:
            return None
        priced = [(each, self.prices_of(each)) for each in self.billed]
        known = [cost_at(each, prices) for each, prices in priced if prices is not None]
        return sum(known) if len(known) == len(priced) else None

    def prices_of(self, usage: Usage) -> Prices | None:
        """Return the prices of a usage of its model at the time of the call; None if unknown."""
        return self.model.prices_at(usage.prompt, self.at) if self.at_list_price else None


def audited_calls(
    recording: Recording, pricing: ModelPrices, counted: Collection[bytes] = ()
) -> tuple[AuditedCall, ...]:
    """Return the calls of a recording; those with a key in `counted` are copies."""
    return tuple(_calls(recording, pricing, counted))


def _calls(recording: Recording, pricing: ModelPrices, counted: Collection[bytes]) -> Iterator[AuditedCall]:
    compactions = {
        each.index: each for each in sorted(recording.compactions, key=lambda each: each.kind == "summary")
    }
    begins_turn, crossed, last = False, None, None
    searched, loaded = False, False
    for index, recorded in enumerate(recording.messages):
        found = compactions.get(index)
        if found is not None and (crossed is None or crossed.kind == "prune"):
            crossed = found
        if recorded.call is not None:
            name = recorded.call.model or recording.model
            asked = recorded.call.asked_at if recorded.call.asked_at is not None else last
            keys = tuple(_keys(recorded.call, recorded.at))
            yield AuditedCall(
                index=index,
                model=pricing.model(name, recorded.at if asked is None else asked),
                usage=_with_prompt(recorded.call.usage),
                output=recorded.call.usage.output if recorded.call.usage else 0,
                others=recorded.call.others,
                at_list_price=recorded.call.list_price,
                asked=_before(asked, recorded.at),
                answered=recorded.at,
                begins_turn=begins_turn,
                loads_tools=searched and not loaded,
                compaction=crossed,
                keys=keys,
                made_by=recorded.call.made_by,
                copied=any(key in counted for key in keys),
            )
            begins_turn, crossed, loaded = False, None, searched
        searched = searched or any(call.name == _TOOL_SEARCH for call in recorded.message.calls)
        begins_turn = begins_turn or _is_by_user(recorded)
        last = last if recorded.at is None else recorded.at


def _is_by_user(recorded: RecordedMessage) -> bool:
    """Whether the user wrote it; tool results have the user's role in some formats."""
    message = recorded.message
    return message.role == "user" and recorded.kind != SUMMARY_KIND and not message.results


def _with_prompt(usage: Usage | None) -> Usage | None:
    """Return the usage if it has a prompt size: some clients record only the output."""
    return usage if usage is not None and usage.prompt else None


def _before(asked: float | None, answered: float | None) -> float | None:
    """Return the time of the request, but not later than that of the answer (clocks may differ)."""
    return asked if asked is None or answered is None else min(asked, answered)


def _keys(call: RecordedCall, at: float | None) -> Iterator[bytes]:
    """Yield the keys of a call: a copy may have another time, and some formats have no ids."""
    if call.id:
        yield _digest(("id", call.id))
    if at is not None and call.usage is not None:
        yield _digest((at, call.model, call.usage))


def _digest(counted: object) -> bytes:
    return blake2b(msgspec.json.encode(counted), digest_size=_KEY_BYTES).digest()


class Miss(Struct, frozen=True, kw_only=True):
    """Tokens that a call did not read from the cache although the previous call had left them there, and the extra cost."""

    cause: Cause
    tokens: int
    cost: int | None


def misses_of(calls: Sequence[AuditedCall]) -> tuple[Miss | None, ...]:
    """Return the miss of each call, None if it read all it could.

    A call could have read the previous prompt, up to the length of its own; the first call could have read all of its own, had
    another session left it in the cache. The tokens of all misses add up to the whole shortfall.
    """
    return tuple(map(_MissFinder(is_cached=uses_cache(calls)).miss, calls))


def uses_cache(calls: Sequence[AuditedCall]) -> bool:
    """Whether any call reports that it read from a cache or wrote to one."""
    return any(call.usage is not None and call.usage.prompt > call.usage.uncached for call in calls)


def shortfall(before: Usage | None, usage: Usage) -> int:
    """Return the number of tokens that a call could have read from the cache and did not."""
    could = usage.prompt if before is None else min(before.prompt, usage.prompt)
    return max(0, could - usage.cache_read)


def is_expired(before: AuditedCall, call: AuditedCall, *, long: bool) -> bool:
    """Whether the cache entry of the previous call had expired by the time of this call."""
    used, now = before.answered if before.answered is not None else before.asked, call.at
    if used is None or now is None:
        return False
    held = Boundary(key=b"", tokens=0, used=used, long=long)
    return chance_alive(held, call.model.cache, now) < _ALIVE


def lifetime_after(usage: Usage, *, long: bool) -> bool:
    """Whether the session's cache entries have the long lifetime after a call; a call that wrote nothing does not change it."""
    written = usage.cache_write or usage.cache_write_long
    return usage.cache_write_long > usage.cache_write if written else long


class _MissFinder:
    """Finds the misses of a session's calls, in order; remembers the previous call, the first prompt and the cache lifetime."""

    def __init__(self, *, is_cached: bool) -> None:
        self._is_cached = is_cached
        self._before: AuditedCall | None = None
        self._first = 0
        self._found = 0  # what the first call read, plus slack
        self._long = False

    def miss(self, call: AuditedCall) -> Miss | None:
        usage = call.usage
        if usage is None:
            return None
        before = self._before
        tokens = shortfall(before.usage if before else None, usage)
        found = Miss(cause=self._cause(call, usage, tokens), tokens=tokens, cost=_cost(call, usage, tokens))
        if self._before is None:
            self._first, self._found = usage.prompt, usage.cache_read + SLACK_TOKENS
        self._before = call
        self._long = lifetime_after(usage, long=self._long)
        return found if tokens else None

    def _cause(self, call: AuditedCall, usage: Usage, tokens: int) -> Cause:
        before = self._before
        if before is None or before.usage is None:
            return "first"
        if not self._is_cached:
            return "uncached"
        if tokens <= max(SLACK_TOKENS, SLACK_SHARE * before.usage.prompt):
            return "boundary"
        if call.compaction is not None:
            return "compaction"
        if call.model.name != before.model.name:
            return "model_changed"
        if is_expired(before, call, long=self._long):
            return "expired"
        return self._edited(call, usage, before.usage)

    def _edited(self, call: AuditedCall, usage: Usage, before: Usage) -> Cause:
        """Distinguish a change by the client from a loss at the provider.

        Clients change the prompt when the user writes, and the list of tools after a tool search. Also, in a cache with marks,
        all boundaries between what the first call read and the end of its prompt were written together by that call: if one of
        them is found and a later one is not, the prompt has changed.
        """
        inside = usage.cache_read < self._first
        has_marks = isinstance(call.model.cache.matching, MarkedPrefixes)
        if inside and (call.begins_turn or call.loads_tools):
            return "start_changed"
        if inside and has_marks and usage.cache_read > self._found:
            return "start_changed"
        if call.begins_turn or usage.prompt < before.prompt:
            return "prefix_edited"
        return "evicted"


def _cost(call: AuditedCall, usage: Usage, tokens: int) -> int | None:
    """Return the extra cost of `tokens` over reading them, billed like the rest of what the call did not read."""
    prices, rest = call.prices, usage.prompt - usage.cache_read
    if prices is None:
        return None
    if not rest:
        return 0
    long = prices.cache_write if prices.cache_write_long is None else prices.cache_write_long
    paid = (
        usage.uncached * prices.input + usage.cache_write * prices.cache_write + usage.cache_write_long * long
    )
    return nano_dollars(tokens * paid // rest - tokens * prices.cache_read)


class Start(Struct, frozen=True, kw_only=True):
    """What the cache holds when a session starts, in tokens."""

    fixed: int
    """The fixed start of every prompt: the client's tools and system prompt."""
    read: int
    """How much of the first prompt is already cached."""
    slip: float = 0.0
    """Within a turn, the share of cache reads after the fixed start that are lost for unknown reasons."""


def foresee(calls: Sequence[AuditedCall], start: Start | None = None) -> tuple[Usage | None, ...]:
    """Return the predicted input usage of each call; None if its prompt size was not recorded."""
    session = _CachedPrompt(start)
    return tuple(session.call(call, call.usage) if call.usage is not None else None for call in calls)


def foreseen_bill(calls: Sequence[AuditedCall], start: Start | None = None) -> Foreseen | None:
    """Return the predicted and the recorded input bill, without copies; None if no price is known or no cache was used."""
    pairs = list(_bills(calls, start)) if uses_cache(calls) else []
    if not pairs:
        return None
    return Foreseen(foreseen=sum(one for one, _ in pairs), recorded=sum(other for _, other in pairs))


def _bills(calls: Sequence[AuditedCall], start: Start | None) -> Iterator[tuple[int, int]]:
    for call, foreseen in zip(calls, foresee(calls, start), strict=True):
        prices, usage = call.prices, call.usage
        if prices is not None and usage is not None and foreseen is not None and not call.copied:
            yield (
                cost_at(foreseen, prices),
                cost_at(usage, prices) - cost_at(Usage(output=usage.output), prices),
            )


class _CachedPrompt:
    """Models the prompt of a session as blocks, and what of it the provider's cache should hold."""

    def __init__(self, start: Start | None) -> None:
        self._start = start
        self._blocks: list[Block] = []
        self._fixed = 0  # blocks at the start that survive a compaction
        self._turn_began = 0  # tokens of the prompt at the last user message
        self._belief = Belief()
        self._long = False
        self._count = 0
        self._keys = defaultdict[bytes, dict[bytes, bytes]](dict)

    def call(self, call: AuditedCall, usage: Usage) -> Usage:
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
        """Set the blocks of the first prompt: its fixed start, what else is cached, and the rest."""
        for end in sorted({min(end, usage.prompt) for end in (start.fixed, start.read, usage.prompt)}):
            if end > self._size:
                self._add(end - self._size)
        self._fixed = 1 if start.fixed else 0

    def _go_on(self, call: AuditedCall, usage: Usage) -> None:
        """Set the blocks of this prompt: what is left of the previous one, and what is new."""
        if call.compaction is not None or call.loads_tools:
            del self._blocks[self._fixed :]
        elif usage.prompt < self._size:
            self._cut(min(self._turn_began, usage.prompt))
        if usage.prompt < self._size:
            self._cut(usage.prompt)
        if usage.prompt > self._size:
            self._add(usage.prompt - self._size)

    def _slipped(self, expected: Usage) -> Usage:
        """Return the expected usage with the usual small share of reads turned into writes."""
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
        if len(self._blocks) > _MAX_BLOCKS:
            older = self._blocks.pop(self._fixed)
            newer = self._blocks[self._fixed]
            self._blocks[self._fixed] = Block(key=newer.key, tokens=older.tokens + newer.tokens)

    def _layout(self, call: AuditedCall) -> Layout:
        """Return the prompt as the model's cache sees it, with marks after the fixed start and at the end."""
        asked: MarkLifetime = "long" if self._long else "short"
        marked = {len(self._blocks) - 1, self._fixed - 1}
        start = call.model.name.encode()
        keys = self._keys[start]
        for block in self._blocks:
            if block.key not in keys:
                keys[block.key] = chained([start], start=block.key)[0]
        blocks = (
            Block(key=keys[block.key], tokens=block.tokens, mark=asked if at in marked else "")
            for at, block in enumerate(self._blocks)
        )
        return Layout(blocks=tuple(blocks))
