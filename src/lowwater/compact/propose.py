"""Everything the mechanisms offer for a view, from one reading of it (docs/specification.md: C, D, E)."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from lowwater.compact import condense, dedupe, elide, images, reasoning, shorten, summarize
from lowwater.compact.making import Making
from lowwater.compact.mechanism import Mechanism, offers_of, places_of, without
from lowwater.compact.protection import protected
from lowwater.compact.results import Result, calls_in, results_in
from lowwater.compact.zones import Zones, find_zones, newest_group, smallest_head, smallest_tail
from lowwater.values.limits import Limits
from lowwater.values.proposal import Proposal
from lowwater.values.settings import Settings
from lowwater.values.situation import counted
from lowwater.values.view import Item, Summary

EVERYTHING = "summarize_all"


class Offers(Struct, frozen=True, kw_only=True):
    """What could be done to a view, and the zones it was worked out for."""

    zones: Zones
    proposals: tuple[Proposal, ...]
    outside_tail: int
    """Raw tokens between head and tail, as counted."""


class Asked(Struct, frozen=True, kw_only=True):
    """What the mechanisms are asked about; limits are in the model's tokens, `scale` times the counted ones."""

    items: Sequence[Item]
    making: Making
    limits: Limits
    settings: Settings
    scale: float = 1.0
    system_in_preamble: bool = False
    mechanisms: tuple[Mechanism, ...] = ()
    """Those that others wrote; they are asked before ours."""
    must_fit: bool = False
    """The prompt is larger than it may be: head, tail and newest exchange may be shortened too."""
    too_large: bool = False
    """The request has more bytes than its provider takes: pictures in the tail may go too."""
    memo: tuple[tuple[object, ...], Offers] | None = None
    """The survey once it was made, and of what; never set it."""

    def counted(self, tokens: int) -> int:
        """Return the model's tokens as counted ones."""
        return counted(tokens, self.scale)


def survey(asked: Asked) -> Offers:
    """Find the zones and ask no mechanism yet: most turns are decided without."""
    about = (asked.items, asked.limits, asked.settings, asked.scale, asked.system_in_preamble)
    if asked.memo is None or any(was is not now for was, now in zip(asked.memo[0], about, strict=True)):
        force_setattr(asked, "memo", (about, _survey(asked)))
    assert asked.memo is not None
    return asked.memo[1]


def _survey(asked: Asked) -> Offers:
    compression = asked.settings.compression
    zones = find_zones(
        asked.items,
        first=max(0, compression.protect_first_n - asked.system_in_preamble),
        last=compression.protect_last_n,
        tail_tokens=asked.counted(asked.limits.tail),
    )
    middle = asked.items[zones.head : zones.tail]
    raw = sum([item.tokens for item in middle if not isinstance(item, Summary)])
    return Offers(zones=zones, proposals=(), outside_tail=raw)


def propose(asked: Asked) -> Offers:
    """Ask every mechanism what it could remove; proposals that edit parts do not overlap."""
    surveyed = survey(asked)
    asked = replace(asked, items=tuple(asked.items))
    theirs = offers_of(asked.mechanisms, asked.items, surveyed.zones, asked.making)
    ours, taken = _edits(asked, surveyed.zones), places_of(theirs)
    if taken:
        ours = [offer and without(offer, taken, asked.items) for offer in ours]
    found = [*theirs, *ours, *_summaries(asked, surveyed.zones)]
    return replace(surveyed, proposals=tuple(proposal for proposal in found if proposal is not None))


def wall_limit(limits: Limits, scale: float) -> int:
    """Return the largest tool result, in counted tokens, when fitting comes before keeping."""
    return max(500, counted(limits.most + 1, scale) // 8)


def _edits(asked: Asked, zones: Zones) -> list[Proposal | None]:
    items, making = asked.items, asked.making
    results = results_in(items, range(len(items)), calls_in(items))
    spared = {tool for tool in {result.tool for result in results} if making.preset.protects(tool)}
    usual = [result for result in results if result.tool not in spared]
    repeated = dedupe.propose(items, zones, usual, making)
    replaced = {(target.item, target.path) for target in repeated.targets} if repeated else set()
    middle = zones.middle
    outputs = [result for result in results if result.item in middle]
    prunable = [result for result in outputs if result.tool not in spared and result.place not in replaced]
    protect = asked.counted(asked.limits.protected_tool_output)
    kept = protected(items, prunable, making.preset, tokens=protect)
    going = [result for result in prunable if result.place not in kept]
    gone = replaced.union(result.place for result in going)
    newest = newest_group(items, zones)
    left = [result for result in results if result.item < newest and result.place not in gone]
    return [
        repeated,
        elide.propose(items, going, making),
        reasoning.propose(items, zones),
        images.propose(
            items,
            smallest_tail(items, zones) if asked.too_large else zones,
            spare={result.place for result in outputs} - gone,
        ),
        _shorter(asked, [result for result in left if result.tool not in spared]) or _shorter(asked, left),
        shorten.propose_squeeze(items, making) if asked.must_fit else None,
    ]


def _shorter(asked: Asked, results: Sequence[Result]) -> Proposal | None:
    """Offer what is only allowed when nothing else fits: outputs shortened, in head and tail too, but for the newest exchange.

    Results that are never pruned are offered only when no other is left to shorten.
    """
    limit = wall_limit(asked.limits, asked.scale)
    return shorten.propose_for(asked.items, results, asked.making, limit=limit)


def _summaries(asked: Asked, zones: Zones) -> list[Proposal | None]:
    items, leaf = asked.items, asked.settings.leaf
    target = asked.counted(leaf.leaf_target_tokens)
    return [
        _summary(asked, zones, summarize.NAME),
        condense.propose_leaf(items, zones, chunk=asked.counted(leaf.leaf_chunk_tokens), target=target),
        condense.propose_condense(items, zones, target=target),
        _summary(asked, _smallest(asked, zones), EVERYTHING),
    ]


def _smallest(asked: Asked, zones: Zones) -> Zones:
    """Return the zones where fitting comes before keeping: the newest exchange is tail, and a large head is only what was said first."""
    zones = smallest_tail(asked.items, zones)
    head = sum(item.tokens for item in asked.items[: zones.head])
    return smallest_head(asked.items, zones) if head > 2 * wall_limit(asked.limits, asked.scale) else zones


def _summary(asked: Asked, zones: Zones, name: str) -> Proposal | None:
    compression = asked.settings.compression
    return summarize.propose(
        asked.items,
        zones,
        ratio=compression.summary_ratio,
        least=compression.summary_min_tokens,
        most=asked.counted(asked.limits.summary),
        name=name,
    )
