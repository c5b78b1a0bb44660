"""The providers' rules: where a request is stored, and how what it reads and writes is billed."""

from bisect import bisect_left

from msgspec import Struct

from lowwater.values.layout import Layout
from lowwater.values.model import CacheRules, Marks, Matching, Model, Steps, Uncached, Units
from lowwater.values.usage import Usage

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
