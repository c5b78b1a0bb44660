"""What the provider's cache is believed to hold, and what a call would find there."""

from msgspec import Struct

from lowwater.economics.matching import billed, rule_of, step_of, writes_of
from lowwater.economics.warmth import Warmth
from lowwater.values.layout import Layout
from lowwater.values.model import CacheRules, Marks, Model, Uncached, Units
from lowwater.values.stored_form import stored_as
from lowwater.values.usage import Usage

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
