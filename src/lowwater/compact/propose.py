"""Everything the mechanisms offer for a view, in one pass (SPEC C, D, E)."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact import condense, dedupe, elide, images, reasoning, shorten, summarize
from lowwater.compact.making import Making
from lowwater.compact.zones import Zones, find_zones, smallest_tail
from lowwater.values.limits import Limits
from lowwater.values.proposal import Proposal
from lowwater.values.settings import Settings
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

    def counted(self, tokens: int) -> int:
        """Return the model's tokens as counted ones."""
        return int(tokens / self.scale)


def survey(asked: Asked) -> Offers:
    """Find the zones and ask no mechanism yet: most turns are decided without."""
    compression = asked.settings.compression
    zones = find_zones(
        asked.items,
        first=max(0, compression.protect_first_n - asked.system_in_preamble),
        last=compression.protect_last_n,
        tail_tokens=asked.counted(asked.limits.tail),
    )
    middle = asked.items[zones.middle.start : zones.middle.stop]
    raw = sum(item.tokens for item in middle if not isinstance(item, Summary))
    return Offers(zones=zones, proposals=(), outside_tail=raw)


def propose(asked: Asked) -> Offers:
    """Ask every mechanism what it could remove; proposals that edit parts do not overlap."""
    items, making = asked.items, asked.making
    surveyed = survey(asked)
    zones = surveyed.zones
    repeated = dedupe.propose(items, zones, making)
    skip = frozenset((target.item, target.path) for target in repeated.targets) if repeated else frozenset()
    protect = asked.counted(asked.limits.protected_tool_output)
    found = [
        repeated,
        images.propose(items, zones),
        reasoning.propose(items, zones),
        elide.propose(items, zones, making, protect=protect, skip=skip),
        _summary(asked, zones, summarize.NAME),
        *_passes(asked, zones),
        *_at_the_wall(asked, zones),
    ]
    return replace(surveyed, proposals=tuple(p for p in found if p is not None))


def _passes(asked: Asked, zones: Zones) -> list[Proposal | None]:
    leaf = asked.settings.leaf
    return [
        condense.propose_leaf(
            asked.items, zones, chunk=leaf.leaf_chunk_tokens, target=leaf.leaf_target_tokens
        ),
        condense.propose_condense(asked.items, zones, target=leaf.leaf_target_tokens),
    ]


def _at_the_wall(asked: Asked, zones: Zones) -> list[Proposal | None]:
    """Offer what is only allowed when nothing else fits: a smaller tail, and outputs inside it shortened."""
    limit = wall_limit(asked.limits, asked.scale)
    everything = range(len(asked.items))
    return [
        shorten.propose(asked.items, everything, asked.making, limit=limit, spare_protected=False),
        _summary(asked, smallest_tail(asked.items, zones), EVERYTHING),
    ]


def wall_limit(limits: Limits, scale: float) -> int:
    """Return the largest tool result, in counted tokens, when fitting comes before keeping."""
    return max(500, int(limits.wall / scale) // 8)


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
