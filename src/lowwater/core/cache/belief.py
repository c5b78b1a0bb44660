"""What the provider's cache sees of a request, and the belief about what it holds, given what was sent, when, and the reported usage.

A request is a row of content blocks, each identified by a hash of the prefix up to it. No provider says what it holds. A
request stores prefixes, each ending at a boundary; by the provider's rules (`CacheRules`) a later request reads the longest
one that is still alive, and the usage reported for it corrects the belief.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Usage
from lowwater.core.models.model import (
    CacheRules,
    MarkedPrefixes,
    Matching,
    Model,
    SteppedPrefixes,
    Uncached,
    Units,
)
from lowwater.core.stored_form import stored_as

HALF_LIFE = 3_600.0
"""Seconds after which half of all prefixes are assumed to be gone, where the provider publishes no lifetime.

Such caches are said to keep prefixes for minutes up to a day. Reported usage corrects the assumption after one call.
"""
HALF_LIFE_ON_DISK = 86_400.0
"""The same for caches on disk (`Units`), which are said to keep prefixes for hours to days."""

_LEAST_CHANCE = 0.01
"""A boundary with a smaller chance counts as gone."""

_ROUNDING = 2
"""Tokens by which a boundary may deviate because sizes are rounded: a read that ends so close to it ended there."""

MAX_BOUNDARIES = 256
"""The most boundaries that a belief keeps."""

_MAX_STEP_BOUNDARIES = 192
"""Boundaries that represent a prefix stored in steps: wherever it is cut, one is within half a percent of its length."""
_PREFIX_CHANGED = frozenset({"model_changed", "system_changed", "tools_changed"})
"""Reasons that a provider gives for a miss which refute the whole belief: it saw another prefix than was sent."""
MarkLifetime = Literal["", "short", "long"]
"""How long a prefix is to be cached: not at all, for the provider's default lifetime, or for the long one it sells."""

KEY_BYTES = 8
"""Keys are short because they are stored with every turn, and a collision only spoils one estimate."""


class Block(Struct, frozen=True, kw_only=True):
    """One content block; `key` identifies the whole prefix that ends with it, without cache marks."""

    key: bytes
    tokens: int
    mark: MarkLifetime = ""
    """The lifetime that a cache mark on this block asks for; empty if it has none."""
    ends: Literal["", "input", "output"] = ""
    """Whether an input (of the user or a tool) or an output of the model ends with this block."""


class Layout(Struct, frozen=True, kw_only=True, dict=True):
    """The blocks of one request in the provider's order: tools, system, messages."""

    blocks: tuple[Block, ...]
    automatic: MarkLifetime = "short"
    """The lifetime asked for what the provider caches without marks; empty if the request turns that off."""

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The token position at which each block ends."""
        return tuple(accumulate(block.tokens for block in self.blocks))

    @cached_property
    def index(self) -> dict[bytes, int]:
        """The index of the block with each key."""
        return {block.key: at for at, block in enumerate(self.blocks)}

    @cached_property
    def marked(self) -> tuple[int, ...]:
        """The indexes of the blocks that carry a mark."""
        return tuple(at for at, block in enumerate(self.blocks) if block.mark)

    @property
    def total(self) -> int:
        """The tokens of the whole request."""
        return self.ends[-1] if self.blocks else 0


def chained(digests: Iterable[bytes], *, start: bytes = b"") -> list[bytes]:
    """Return the key of the prefix that ends with each of the blocks' digests.

    `start` is the key to continue from, or a digest of what else the cache depends on: model, thinking, tool choice.
    """
    keys: list[bytes] = []
    key = start
    for digest in digests:
        key = blake2b(key + digest, digest_size=KEY_BYTES).digest()
        keys.append(key)
    return keys


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
    """When it was written, or last read if a read extends its lifetime."""
    long: bool = False
    """Stored for the long lifetime."""


class Belief(Struct, frozen=True, kw_only=True, rename=stored_as("belief"), forbid_unknown_fields=True):
    """What the provider is believed to hold: boundaries, the one used last at the end."""

    boundaries: tuple[Boundary, ...] = ()
    misses: int = 0
    """Calls in a row that read nothing although something was expected."""

    @property
    def trust(self) -> float:
        """The weight of the belief: 1 up to two misses in a row, which may be chance, and half as much after each further one."""
        return 0.5 ** max(0, self.misses - 2)


class Warmth(Struct, frozen=True, kw_only=True):
    """The live boundaries that match a layout, and the rule by which the provider finds them.

    If the provider finds the longest prefix by itself (`step` > 0), every whole step up to the deepest boundary can be
    read. Otherwise only a boundary itself can be read, and only if a mark finds it.
    """

    positions: tuple[int, ...] = ()
    """The boundaries' positions in tokens, ascending."""
    blocks: tuple[int, ...] = ()
    """The indexes of the blocks that end there."""
    ends: tuple[int, ...] = ()
    """The position in tokens at which each block of the layout ends."""
    marks: tuple[int, ...] = ()
    """The blocks from which the provider looks back for a boundary, ascending."""
    lookback: int | None = None
    """How many blocks it looks back from each; None: no limit."""
    step: int = 0
    least: int = 0
    """The smallest prefix, in tokens, that can be read."""
    chance: float = 1.0
    """The chance that the boundaries are still there; below 1 if no lifetime is published or the belief was wrong before."""

    def hit(self, upto: int | None = None) -> int:
        """Return the tokens that would be read if the layout stays unchanged up to token `upto`; None: all of it.

        A changed layout is assumed to get a mark on its last unchanged block.
        """
        limit = self.ends[-1] if upto is None and self.ends else upto or 0
        found = self._by_step(limit) if self.step else self._by_boundary(limit, edge=upto is not None)
        return found if found >= self.least else 0

    def expected(self, upto: int | None = None) -> int:
        """Return the tokens that would be read, weighted by the chance that they are there."""
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


def warmth(belief: Belief, layout: Layout, rules: CacheRules, at: float) -> Warmth:
    """Return what of `layout` should be in the cache at the time `at`, judged by timestamps alone."""
    rule = rule_of(layout, rules)
    if isinstance(rule, Uncached):
        return Warmth(ends=layout.ends)
    held = belief.boundaries
    if isinstance(rule, MarkedPrefixes) and rule.lookback_marks is not None:
        held = held[-rule.lookback_marks :]
    index, alive = layout.index, dict[int, float]()
    for boundary in held:
        block = index.get(boundary.key)
        if block is not None and (chance := chance_alive(boundary, rules, at)) > 0:
            alive[block] = chance
    blocks = tuple(sorted(alive))
    return Warmth(
        positions=tuple(layout.ends[block] for block in blocks),
        blocks=blocks,
        ends=layout.ends,
        marks=tuple(write.block for write in writes_of(layout, rules, 0))
        if isinstance(rule, MarkedPrefixes)
        else (),
        lookback=rule.lookback_blocks if isinstance(rule, MarkedPrefixes) else None,
        step=step_of(rule),
        least=rules.min_cacheable or 0,
        chance=(alive[blocks[-1]] if blocks else 1.0) * belief.trust,
    )


def chance_alive(boundary: Boundary, rules: CacheRules, at: float) -> float:
    """Return the chance that a boundary is still cached: 0 or 1 by its lifetime, or halved with each half-life if unpublished."""
    ttl = rules.ttl_long if boundary.long and rules.ttl_long is not None else rules.ttl
    if ttl is not None:
        return 1.0 if at - boundary.used <= ttl else 0.0
    gap = max(0.0, at - boundary.used)
    half_life = HALF_LIFE_ON_DISK if isinstance(rules.matching, Units) else HALF_LIFE
    chance = 0.5 ** (gap / half_life)
    return chance if chance >= _LEAST_CHANCE else 0.0


def written_for(belief: Belief) -> Literal["short", "long"] | None:
    """Return the lifetime for which the last call stored the end of its prompt; None if nothing is known to be cached."""
    newest = max(belief.boundaries, key=lambda boundary: (boundary.used, boundary.tokens), default=None)
    if newest is None:
        return None
    return "long" if newest.long else "short"


def expected_usage(belief: Belief, layout: Layout, model: Model, at: float) -> Usage:
    """Return the input that a call with this layout at the time `at` should be billed for.

    If no lifetime is published, the tokens read are weighted by the chance that they are still there.
    """
    return billed(layout, model, warmth(belief, layout, model.cache, at).expected())


def billed(layout: Layout, model: Model, hit: int) -> Usage:
    """Return the billed input of a call with this layout that reads `hit` tokens."""
    rest = layout.total - hit
    match rule_of(layout, model.cache):
        case MarkedPrefixes():
            writes = writes_of(layout, model.cache, hit)
            last = max((layout.ends[write.block] for write in writes), default=0)
            long_to = max((layout.ends[write.block] for write in writes if write.long), default=0)
            long = max(0, long_to - hit)
            short = max(0, last - max(hit, long_to))
            return Usage(
                uncached=rest - long - short, cache_read=hit, cache_write=short, cache_write_long=long
            )
        case SteppedPrefixes() | Units() if layout.automatic == "long" and _sells_long_writes(model):
            return Usage(cache_read=hit, cache_write_long=rest)
        case _:
            return Usage(cache_read=hit, uncached=rest)


def _sells_long_writes(model: Model) -> bool:
    return model.prices is not None and model.prices.cache_write_long is not None


class BeliefError(
    Struct, frozen=True, kw_only=True, rename=stored_as("belief_error"), forbid_unknown_fields=True
):
    """What a call was expected to read and write, and what was reported; None if nothing was reported."""

    expected_read: int
    expected_write: int
    reported_read: int | None = None
    reported_write: int | None = None

    @property
    def tokens(self) -> int:
        """The absolute error of the expected read; 0 if nothing was reported."""
        return 0 if self.reported_read is None else abs(self.reported_read - self.expected_read)


class AfterCall(NamedTuple):
    """The belief after a call, and how wrong the belief before it was."""

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
    """Return the belief after a call with `layout` was answered.

    `reported` is the usage of the request itself, without a compaction on the provider's side. `output_key` is the key
    of the prefix that ends with the answer, for providers that cache what they generate. `miss_reason` is the provider's
    own explanation of a miss, if it gives one.
    """
    warm = warmth(belief, layout, model.cache, at)
    expected = billed(layout, model, warm.expected())
    read = hit = warm.hit()
    held, misses = _alive(belief, model.cache, at), belief.misses
    if reported is not None:
        read = _tokens_read(reported, layout, warm, hit)
        misses = 0 if read > 0 else misses + (hit > 0)
        held = _without_unread(held, layout, read, hit)
    if miss_reason in _PREFIX_CHANGED:
        held, read = {}, 0 if reported is None else read
    _refresh(held, layout, model.cache, read, at)
    if reported is None or not _wrote_nothing(model.cache, expected, reported):
        _store(held, layout, model.cache, read, at)
    if model.cache.output_cached and output_key is not None:
        end = layout.total + output_tokens
        held[output_key] = Boundary(key=output_key, tokens=end, used=at, long=layout.automatic == "long")
    now = Belief(boundaries=_newest(held), misses=misses)
    return AfterCall(belief=now, error=_belief_error(expected, reported))


def _tokens_read(reported: Usage, layout: Layout, warm: Warmth, hit: int) -> int:
    """Return the tokens read, converted to the layout's count, which may differ from the provider's.

    A deviation from `hit`, or from another boundary, that rounding or the difference of the two counts explains is ignored.
    """
    if not reported.prompt:
        return reported.cache_read
    read = round(reported.cache_read * layout.total / reported.prompt)
    likely = [hit] if warm.step else [hit, *warm.positions]
    nearest = min(likely, key=lambda position: abs(read - position))
    most = max(_ROUNDING, abs(reported.prompt - layout.total))
    return nearest if read > 0 and abs(read - nearest) <= most else read


def _alive(belief: Belief, rules: CacheRules, at: float) -> dict[bytes, Boundary]:
    return {held.key: held for held in belief.boundaries if chance_alive(held, rules, at) > 0}


def _without_unread(
    held: dict[bytes, Boundary], layout: Layout, read: int, hit: int
) -> dict[bytes, Boundary]:
    """Drop the boundaries that should have been read and were not; all of them if nothing was read."""
    if read >= hit:
        return held
    if read == 0:
        return {}
    gone = {block.key for block in layout.blocks[bisect_right(layout.ends, read) :]}
    return {key: boundary for key, boundary in held.items() if key not in gone}


def _refresh(held: dict[bytes, Boundary], layout: Layout, rules: CacheRules, read: int, at: float) -> None:
    """Renew the boundaries within what was read, where a read extends the lifetime.

    The boundary where the read ended must have been cached, even if it was believed to be gone.
    """
    last = bisect_right(layout.ends, read) - 1
    if read <= 0 or last < 0 or rules.refreshed_by_hit is False:
        return
    for block in range(last + 1):
        key = layout.blocks[block].key
        if key in held or block == last:
            _put(held, Boundary(key=key, tokens=layout.ends[block], used=at))


def _store(held: dict[bytes, Boundary], layout: Layout, rules: CacheRules, read: int, at: float) -> None:
    """Add the boundaries that the request wrote."""
    for write in writes_of(layout, rules, read):
        key = layout.blocks[write.block].key
        if rules.refreshed_by_hit is False and key in held and layout.ends[write.block] <= read:
            continue
        # What was read is not written again, so a mark that asks for the long lifetime does not change it.
        was_read = layout.ends[write.block] <= read and key in held
        long = write.long and not was_read
        _put(held, Boundary(key=key, tokens=layout.ends[write.block], used=at, long=long))


def _put(held: dict[bytes, Boundary], new: Boundary) -> None:
    """Add or replace a boundary; one that was stored for the long lifetime keeps it."""
    old = held.get(new.key)
    held[new.key] = replace(new, long=True) if old is not None and old.long else new


def _wrote_nothing(rules: CacheRules, expected: Usage, reported: Usage) -> bool:
    """Return whether a provider that reports its writes wrote nothing, so that the marks cannot have reached it."""
    reports = isinstance(rules.matching, MarkedPrefixes) and rules.matching.unmarked == "uncached"
    wanted = expected.cache_write + expected.cache_write_long
    return reports and wanted > 0 and not (reported.prompt - reported.uncached)


def _newest(held: dict[bytes, Boundary]) -> tuple[Boundary, ...]:
    """Return at most `MAX_BOUNDARIES`, those used last; of those used at the same time, an evenly spread selection."""
    newest_first = sorted(held.values(), key=lambda boundary: (-boundary.used, boundary.tokens))
    kept: list[Boundary] = []
    for _, together in groupby(newest_first, key=attrgetter("used")):
        room = MAX_BOUNDARIES - len(kept)
        if room < 2:
            break
        same = list(together)
        kept.extend(same[at] for at in _spread_evenly([boundary.tokens for boundary in same], room))
    return tuple(sorted(kept, key=lambda boundary: (boundary.used, boundary.tokens)))


def _belief_error(expected: Usage, reported: Usage | None) -> BeliefError:
    error = BeliefError(
        expected_read=expected.cache_read, expected_write=expected.cache_write + expected.cache_write_long
    )
    if reported is None:
        return error
    written = reported.cache_write + reported.cache_write_long
    return replace(error, reported_read=reported.cache_read, reported_write=written)


def rule_of(layout: Layout, rules: CacheRules) -> Matching:
    """Return the rule that applies to this request, which depends on its marks and on whether caching without marks is on."""
    match rules.matching:
        case MarkedPrefixes(unmarked="instead"):
            if layout.marked:
                return rules.matching
            return SteppedPrefixes() if layout.automatic else Uncached()
        case MarkedPrefixes(unmarked="beside"):
            return rules.matching if layout.marked or layout.automatic else Uncached()
        case MarkedPrefixes():
            return rules.matching if layout.marked else Uncached()
        case Uncached():
            return rules.matching
        case SteppedPrefixes() | Units():
            return rules.matching if layout.automatic else Uncached()


def step_of(rule: Matching) -> int:
    """Return the step, in tokens, to which a rule rounds the longest prefix down; 0 if it finds whole boundaries only.

    An unpublished step is assumed to be one token.
    """
    return (rule.tokens or 1) if isinstance(rule, SteppedPrefixes) else 0


class Write(Struct, frozen=True, kw_only=True):
    """A boundary that a request stores: the block that it follows, and whether for the long lifetime."""

    block: int
    long: bool = False


def writes_of(layout: Layout, rules: CacheRules, hit: int) -> list[Write]:
    """Return the boundaries that a request stores once it is processed, if `hit` of its tokens were read."""
    match rule_of(layout, rules):
        case MarkedPrefixes() as rule:
            return _writes_at_marks(layout, rule, rules.min_cacheable or 0)
        case SteppedPrefixes() as rule:
            return _writes_in_steps(layout, max(rule.tokens or 1, rules.min_cacheable or 0))
        case Units():
            return _writes_of_units(layout, hit)
        case Uncached():
            return []


def _writes_at_marks(layout: Layout, rule: MarkedPrefixes, least: int) -> list[Write]:
    """Return a write for each of the last `max_marks` marks, including the one the provider itself may add at the end."""
    asked = {at: layout.blocks[at].mark for at in layout.marked}
    if rule.unmarked == "beside" and layout.automatic and layout.blocks:
        asked.setdefault(len(layout.blocks) - 1, layout.automatic)
    newest = sorted(asked)[-rule.max_marks :]
    return [Write(block=at, long=asked[at] == "long") for at in newest if layout.ends[at] >= least]


def _writes_in_steps(layout: Layout, least: int) -> list[Write]:
    """Return writes that represent a prefix which is stored whole: evenly spread block ends, and every marked block."""
    long = layout.automatic == "long"
    first = bisect_left(layout.ends, least)
    chosen = _spread_evenly(layout.ends[first:], _MAX_STEP_BOUNDARIES)
    kept = {first + at for at in chosen} | {at for at in layout.marked if at >= first}
    return [Write(block=at, long=long) for at in sorted(kept)]


def _writes_of_units(layout: Layout, hit: int) -> list[Write]:
    """Return a write for the end of the request, and for each end of an input or output in what was not read.

    The latter approximate the units that the provider cuts long inputs into, at intervals it does not publish.
    """
    long = layout.automatic == "long"
    first = bisect_left(layout.ends, hit + 1)
    last = len(layout.blocks) - 1
    ends = [at for at in range(first, last) if layout.blocks[at].ends]
    return [Write(block=at, long=long) for at in (*ends, last) if at >= 0]


def _spread_evenly(positions: tuple[int, ...] | list[int], most: int) -> list[int]:
    """Return the indexes of at most `most` of the ascending positions, spread evenly by distance, the last one included."""
    if len(positions) <= most:
        return list(range(len(positions)))
    first, last = positions[0], positions[-1]
    wanted = (first + (last - first) * at // (most - 1) for at in range(most))
    return sorted({bisect_left(positions, position) for position in wanted})
