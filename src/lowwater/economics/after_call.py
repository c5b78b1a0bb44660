"""What the provider holds once a call was made, corrected by what it reported."""

from bisect import bisect_right
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lowwater.economics.belief import Belief, Boundary, chance_alive, warmth
from lowwater.economics.matching import billed, evenly, writes_of
from lowwater.values.layout import Layout
from lowwater.values.model import CacheRules, Marks, Model
from lowwater.values.stored_form import stored_as
from lowwater.values.usage import Usage

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
