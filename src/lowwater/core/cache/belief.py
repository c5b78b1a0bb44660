"""What the provider's cache should hold: kept up to date by what was sent, when, and what usage was reported."""

from bisect import bisect_left, bisect_right
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.cache.layout import Layout
from lowwater.core.models.model import CacheRules, Marks, Matching, Model, Steps, Uncached, Units
from lowwater.core.stored_form import stored_as

PATH = 192
"""Boundaries that stand for a prefix stored in steps: they lie within half a percent of it of any cut."""


class Write(Struct, frozen=True, kw_only=True):
    """A boundary that a request stores: the block it ends, and whether for the long lifetime."""

    block: int
    long: bool = False


def rule_of(layout: Layout, rules: CacheRules) -> Matching:
    """Return the rule that holds for this request: with or without marks, with or without what comes by itself."""
    match rules.matching:
        case Marks(unmarked="instead"):
            if layout.marked:
                return rules.matching
            return Steps() if layout.automatic else Uncached()
        case Marks(unmarked="beside"):
            return rules.matching if layout.marked or layout.automatic else Uncached()
        case Marks():
            return rules.matching if layout.marked else Uncached()
        case Uncached():
            return rules.matching
        case Steps() | Units():
            return rules.matching if layout.automatic else Uncached()


def step_of(rule: Matching) -> int:
    """Return the step in which a rule finds the longest prefix, 0 if it finds whole boundaries only.

    Where the step is not published every token is taken to count.
    """
    return (rule.tokens or 1) if isinstance(rule, Steps) else 0


def writes_of(layout: Layout, rules: CacheRules, hit: int) -> list[Write]:
    """Return the boundaries that are stored once the request was processed, of which `hit` tokens were read."""
    match rule_of(layout, rules):
        case Marks() as rule:
            return _marks(layout, rule, rules.min_cacheable or 0)
        case Steps() as rule:
            return _path(layout, max(rule.tokens or 1, rules.min_cacheable or 0))
        case Units():
            return _units(layout, hit)
        case Uncached():
            return []


def billed(layout: Layout, model: Model, hit: int) -> Usage:
    """Return the input side of a call with this layout that reads `hit` tokens."""
    rest = layout.total - hit
    match rule_of(layout, model.cache):
        case Marks():
            writes = writes_of(layout, model.cache, hit)
            last = max((layout.ends[write.block] for write in writes), default=0)
            long_to = max((layout.ends[write.block] for write in writes if write.long), default=0)
            long = max(0, long_to - hit)
            short = max(0, last - max(hit, long_to))
            return Usage(
                uncached=rest - long - short, cache_read=hit, cache_write=short, cache_write_long=long
            )
        case Steps() | Units() if layout.automatic == "long" and _sells_long_writes(model):
            return Usage(cache_read=hit, cache_write_long=rest)
        case _:
            return Usage(cache_read=hit, uncached=rest)


def _sells_long_writes(model: Model) -> bool:
    return model.prices is not None and model.prices.cache_write_long is not None


def _marks(layout: Layout, rule: Marks, least: int) -> list[Write]:
    """The newest marks count; one that the provider places by itself, on the last block, is one of them."""
    asked = {at: layout.blocks[at].mark for at in layout.marked}
    if rule.unmarked == "beside" and layout.automatic and layout.blocks:
        asked.setdefault(len(layout.blocks) - 1, layout.automatic)
    newest = sorted(asked)[-rule.max_marks :]
    return [Write(block=at, long=asked[at] == "long") for at in newest if layout.ends[at] >= least]


def _path(layout: Layout, least: int) -> list[Write]:
    """All of it is stored: so many block ends that a later cut finds one close by, and every marked one."""
    long = layout.automatic == "long"
    first = bisect_left(layout.ends, least)
    chosen = evenly(layout.ends[first:], PATH)
    kept = {first + at for at in chosen} | {at for at in layout.marked if at >= first}
    return [Write(block=at, long=long) for at in sorted(kept)]


def _units(layout: Layout, hit: int) -> list[Write]:
    """The end of the request, and ends of inputs and outputs in what was not read.

    Those stand in for the units that the provider carves out of long inputs at intervals it does not publish.
    """
    long = layout.automatic == "long"
    first = bisect_left(layout.ends, hit + 1)
    last = len(layout.blocks) - 1
    ends = [at for at in range(first, last) if layout.blocks[at].ends]
    return [Write(block=at, long=long) for at in (*ends, last) if at >= 0]


def evenly(positions: tuple[int, ...] | list[int], most: int) -> list[int]:
    """Return the indices of at most `most` ascending positions, spread evenly by distance, the last among them."""
    if len(positions) <= most:
        return list(range(len(positions)))
    first, last = positions[0], positions[-1]
    wanted = (first + (last - first) * at // (most - 1) for at in range(most))
    return sorted({bisect_left(positions, position) for position in wanted})


class Warmth(Struct, frozen=True, kw_only=True):
    """The stored boundaries that lie on a layout and are alive, and the rule by which they are found.

    Where the provider finds the longest prefix by itself (`step` > 0), every whole step up to the deepest boundary can
    be read; otherwise only a boundary itself, and only if a mark finds it.
    """

    positions: tuple[int, ...] = ()
    """Where the boundaries lie, in tokens, ascending."""
    blocks: tuple[int, ...] = ()
    """The blocks they end."""
    ends: tuple[int, ...] = ()
    """Where each block of the layout ends."""
    marks: tuple[int, ...] = ()
    """The blocks from which the provider looks back, ascending."""
    lookback: int | None = None
    """How many blocks it looks back from each; None is no limit."""
    step: int = 0
    least: int = 0
    """Tokens below which nothing is read."""
    chance: float = 1.0
    """How likely the boundaries are still there; below 1 only where no lifetime is published."""

    def hit(self, upto: int | None = None) -> int:
        """Return the tokens that would be read if the layout is unchanged up to token `upto`; None is all of it.

        A changed layout is taken to have a mark at its last unchanged block.
        """
        limit = self.ends[-1] if upto is None and self.ends else upto or 0
        found = self._by_step(limit) if self.step else self._by_boundary(limit, edge=upto is not None)
        return found if found >= self.least else 0

    def expected(self, upto: int | None = None) -> int:
        """Return the tokens read, weighed by the chance that they are there."""
        hit = self.hit(upto)
        return hit if self.chance >= 1.0 else round(hit * self.chance)

    def _by_step(self, limit: int) -> int:
        depth = self.positions[-1] if self.positions else 0
        return min(depth, limit) // self.step * self.step

    def _by_boundary(self, limit: int, *, edge: bool) -> int:
        last = bisect_right(self.ends, limit) - 1
        if self.lookback is None:
            return self._deepest(last, 0)
        starts = [mark for mark in self.marks if mark <= last]
        if edge and last >= 0:
            starts.append(last)
        return max((self._deepest(start, start - self.lookback) for start in starts), default=0)

    def _deepest(self, last: int, first: int) -> int:
        """Return the position of the deepest boundary that ends one of the blocks from `first` to `last`."""
        at = bisect_right(self.blocks, last) - 1
        return self.positions[at] if at >= 0 and self.blocks[at] >= first else 0


HALF_LIFE = 3_600.0
"""Seconds after which half of all prefixes are taken to be gone, where the provider publishes no lifetime.

An assumption: such caches are said to keep minutes to a day. Reported usage corrects it after one call.
"""

HALF_LIFE_ON_DISK = 86_400.0
"""The same for stored units, which are said to be kept for hours to days."""

LEAST_CHANCE = 0.01
"""Below this a boundary is taken to be gone."""


class Boundary(
    Struct,
    frozen=True,
    kw_only=True,
    array_like=True,
    rename=stored_as("boundary"),
    forbid_unknown_fields=True,
):
    """The end of a prefix that the provider stored."""

    key: bytes
    tokens: int
    used: float
    """When it was written, or last read where reading prolongs its life."""
    long: bool = False
    """Stored for the long lifetime."""


class Belief(Struct, frozen=True, kw_only=True, rename=stored_as("belief"), forbid_unknown_fields=True):
    """What the provider holds: boundaries, the one used last at the end."""

    boundaries: tuple[Boundary, ...] = ()
    misses: int = 0
    """Calls in a row that read nothing although something was expected."""

    @property
    def trust(self) -> float:
        """How far it deserves to be believed: two misses are bad luck, with each further one it is worth half."""
        return 0.5 ** max(0, self.misses - 2)


def warmth(belief: Belief, layout: Layout, rules: CacheRules, at: float) -> Warmth:
    """Return what of `layout` is in the cache at the moment `at`, told from timestamps, before any call."""
    rule = rule_of(layout, rules)
    if isinstance(rule, Uncached):
        return Warmth(ends=layout.ends)
    held = belief.boundaries
    if isinstance(rule, Marks) and rule.lookback_marks is not None:
        held = held[-rule.lookback_marks :]
    index, found, deepest = layout.index, [], (-1, 1.0)
    for boundary in held:
        block = index.get(boundary.key)
        if block is not None and (chance := chance_alive(boundary, rules, at)) > 0:
            found.append(block)
            deepest = max(deepest, (block, chance))
    blocks = tuple(sorted(found))
    return Warmth(
        positions=tuple(layout.ends[block] for block in blocks),
        blocks=blocks,
        ends=layout.ends,
        marks=tuple(write.block for write in writes_of(layout, rules, 0)) if isinstance(rule, Marks) else (),
        lookback=rule.lookback_blocks if isinstance(rule, Marks) else None,
        step=step_of(rule),
        least=rules.min_cacheable or 0,
        chance=deepest[1] * belief.trust,
    )


def expected_usage(belief: Belief, layout: Layout, model: Model, at: float) -> Usage:
    """Return the input side of what a call with this layout would be billed at the moment `at`.

    Where no lifetime is published the tokens read are weighed by the chance that they are still there.
    """
    return billed(layout, model, warmth(belief, layout, model.cache, at).expected())


def chance_alive(boundary: Boundary, rules: CacheRules, at: float) -> float:
    """Return how likely a boundary is still held: 0 or 1 by its lifetime, or halved with each half-life."""
    gap = max(0.0, at - boundary.used)
    ttl = rules.ttl_long if boundary.long and rules.ttl_long is not None else rules.ttl
    if ttl is not None:
        return 1.0 if gap <= ttl else 0.0
    half_life = HALF_LIFE_ON_DISK if isinstance(rules.matching, Units) else HALF_LIFE
    chance = 0.5 ** (gap / half_life)
    return chance if chance >= LEAST_CHANCE else 0.0


MOST = 256
"""Boundaries that a belief keeps."""

MOVED = frozenset({"model_changed", "system_changed", "tools_changed"})
"""Reasons for a miss that deny everything believed: the provider saw another start than was sent."""


class BeliefError(
    Struct, frozen=True, kw_only=True, rename=stored_as("belief_error"), forbid_unknown_fields=True
):
    """What a call was expected to read and write, beside what was reported; None if nothing was."""

    expected_read: int
    expected_write: int
    reported_read: int | None = None
    reported_write: int | None = None

    @property
    def tokens(self) -> int:
        """How far the expected read was off, either way; 0 if nothing was reported."""
        return 0 if self.reported_read is None else abs(self.reported_read - self.expected_read)


class AfterCall(NamedTuple):
    """The belief after a call, and how wrong the one before it was."""

    belief: Belief
    error: BeliefError


def after_call(
    belief: Belief,
    layout: Layout,
    model: Model,
    at: float,
    *,
    reported: Usage | None = None,
    output_key: bytes | None = None,
    output_tokens: int = 0,
    miss_reason: str = "",
) -> AfterCall:
    """Return what is held after a call with `layout` was answered.

    `reported` is the usage of the request itself, without compactions on the provider's side. `output_key` is the key
    of the prefix that ends with the answer, for providers that cache what they generate.
    """
    warm = warmth(belief, layout, model.cache, at)
    expected = billed(layout, model, warm.expected())
    read = hit = warm.hit()
    held, misses = _alive(belief, model.cache, at), belief.misses
    if reported is not None:
        read = _read(reported, layout, hit)
        misses = 0 if read > 0 else misses + (hit > 0)
        held = _corrected(held, layout, read, hit)
    if miss_reason in MOVED:
        held, read = {}, 0 if reported is None else read
    _refresh(held, layout, model.cache, read, at)
    if reported is None or not _refused(model.cache, expected, reported):
        _store(held, layout, model.cache, read, at)
    if model.cache.output_cached and output_key is not None:
        end = layout.total + output_tokens
        held[output_key] = Boundary(key=output_key, tokens=end, used=at, long=layout.automatic == "long")
    now = Belief(boundaries=_bounded(held), misses=misses)
    return AfterCall(belief=now, error=_error(expected, reported))


def _read(reported: Usage, layout: Layout, hit: int) -> int:
    """Return the tokens read in the layout's count, which may differ from the provider's.

    A difference that the two counts of the prompt explain is none.
    """
    if reported.prompt in (0, layout.total):
        return reported.cache_read
    read = round(reported.cache_read * layout.total / reported.prompt)
    return hit if read > 0 and abs(read - hit) <= abs(reported.prompt - layout.total) else read


def _alive(belief: Belief, rules: CacheRules, at: float) -> dict[bytes, Boundary]:
    return {held.key: held for held in belief.boundaries if chance_alive(held, rules, at) > 0}


def _corrected(held: dict[bytes, Boundary], layout: Layout, read: int, hit: int) -> dict[bytes, Boundary]:
    """Drop what was expected and not read, and everything if nothing was read."""
    if read >= hit:
        return held
    if read == 0:
        return {}
    gone = {block.key for block in layout.blocks[bisect_right(layout.ends, read) :]}
    return {key: boundary for key, boundary in held.items() if key not in gone}


def _refresh(held: dict[bytes, Boundary], layout: Layout, rules: CacheRules, read: int, at: float) -> None:
    """Prolong what was read: the boundary at its end, and those on the way, whose content was used as well.

    The block that ends where reading ended was held, even if it was believed to be gone.
    """
    last = bisect_right(layout.ends, read) - 1
    if read <= 0 or last < 0 or rules.refreshed_by_hit is False:
        return
    for block in range(last + 1):
        key = layout.blocks[block].key
        if key in held or block == last:
            _put(held, Boundary(key=key, tokens=layout.ends[block], used=at))


def _store(held: dict[bytes, Boundary], layout: Layout, rules: CacheRules, read: int, at: float) -> None:
    for write in writes_of(layout, rules, read):
        key = layout.blocks[write.block].key
        if rules.refreshed_by_hit is False and key in held and layout.ends[write.block] <= read:
            continue
        # What was read is not written again, so a mark that asks for longer does not make it live longer.
        was_read = layout.ends[write.block] <= read and key in held
        long = write.long and not was_read
        _put(held, Boundary(key=key, tokens=layout.ends[write.block], used=at, long=long))


def _put(held: dict[bytes, Boundary], new: Boundary) -> None:
    """Put a boundary in; one that stood there for the long lifetime keeps it."""
    old = held.get(new.key)
    held[new.key] = replace(new, long=True) if old is not None and old.long else new


def _refused(rules: CacheRules, expected: Usage, reported: Usage) -> bool:
    """Whether the provider, which reports its writes, wrote nothing: the marks did not reach it."""
    reports = isinstance(rules.matching, Marks) and rules.matching.unmarked == "uncached"
    wanted = expected.cache_write + expected.cache_write_long
    return reports and wanted > 0 and not (reported.prompt - reported.uncached)


def _bounded(held: dict[bytes, Boundary]) -> tuple[Boundary, ...]:
    """Return what was used last; of those used at the same moment, so many as there is room for, evenly spread."""
    newest_first = sorted(held.values(), key=lambda boundary: (-boundary.used, boundary.tokens))
    kept: list[Boundary] = []
    for _, together in groupby(newest_first, key=attrgetter("used")):
        room = MOST - len(kept)
        if room < 2:
            break
        same = list(together)
        kept.extend(same[at] for at in evenly([boundary.tokens for boundary in same], room))
    return tuple(sorted(kept, key=lambda boundary: (boundary.used, boundary.tokens)))


def _error(expected: Usage, reported: Usage | None) -> BeliefError:
    error = BeliefError(
        expected_read=expected.cache_read, expected_write=expected.cache_write + expected.cache_write_long
    )
    if reported is None:
        return error
    written = reported.cache_write + reported.cache_write_long
    return replace(error, reported_read=reported.cache_read, reported_write=written)
