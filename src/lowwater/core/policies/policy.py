"""What a policy is: a named rule, what it asks of the mechanisms, and the size from which on it acts.

A file of this folder that has `POLICIES` adds them; nothing else has to know about it.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Decision, DecisionContext
from lowwater.core.limits import Limits
from lowwater.core.proposals import Preset
from lowwater.settings import Settings, ToolResultSettings

OWN = Preset()
"""What a policy asks of the mechanisms unless it was modelled on another system."""
PRICED = replace(OWN, priced=True)
SEED = Preset(
    elide_limit_chars=200, never_prune=(*OWN.never_prune, "read"), by_value=False, digests_arguments=False
)
RUNWAY = replace(SEED, plain_placeholders=True)
CLASSIC = replace(RUNWAY, threshold_floor=False, note_in_system=True)
PolicyRule = Callable[[DecisionContext, Settings], Decision]


class ActionPoint(Struct, frozen=True, kw_only=True):
    """The size from which on a prompt is compacted, and the name of that size for people."""

    at: int
    called: str
    beyond: bool = False
    """A prompt of exactly that size is not compacted yet."""

    def is_reached(self, tokens: int) -> bool:
        """Return whether a prompt of this size is compacted."""
        return tokens > self.at if self.beyond else tokens >= self.at


def threshold_point(limits: Limits, _: Settings) -> ActionPoint:
    """Return the threshold of the settings."""
    return ActionPoint(at=limits.threshold, called="threshold")


def hygiene_point(limits: Limits, _: Settings) -> ActionPoint:
    """Return the limit of the safety net."""
    return ActionPoint(at=limits.hygiene, called="hygiene limit")


class Policy(Struct, frozen=True, kw_only=True):
    """A named rule; `decide` in `safety_rules.py` may overrule what it decides."""

    name: str
    decide: PolicyRule
    preset: Preset
    mechanisms: tuple[str, ...] | None = None
    """The mechanisms of a compaction by hand, in the order in which they are carried out; None: all edits, then `summarize`."""
    avoids_cliffs: bool = True
    """Keep the prompt below the size from which on the whole request is billed at higher prices, whatever that costs.
    A policy that compares prices does not need this: its prices include the cliff."""
    smallest_context: bool = True
    """Use the smallest context length among the model and its fallbacks, rather than that of the model in use."""
    larger_count: bool = False
    """Use the larger of the counted and the reported size of the prompt (docs/specification.md: E)."""
    point: Callable[[Limits, Settings], ActionPoint | None] = threshold_point
    """The size from which on the policy asks for compaction; returns None if no size makes it."""
    sentences: Mapping[str, str] = {}
    """For reason codes of its own: a sentence for each, with the names of its facts in braces."""

    def acts_at(self, limits: Limits, settings: Settings) -> ActionPoint:
        """Return the size from which on a prompt is compacted: the policy's own, or a lower one that a safety rule sets."""
        ceiling = settings.compression.max_view_tokens
        points = [
            self.point(limits, settings),
            ActionPoint(at=ceiling, called="ceiling", beyond=True) if ceiling is not None else None,
            hygiene_point(limits, settings) if settings.compression.hygiene else None,
            ActionPoint(at=limits.cliff, called="cliff") if self.avoids_cliffs and limits.cliff else None,
            ActionPoint(at=limits.wall, called="wall"),
        ]
        return min((point for point in points if point is not None), key=lambda point: point.at)


def preset_under(preset: Preset, chosen: ToolResultSettings) -> Preset:
    """Return the preset with the user's settings; a setting of null keeps the preset's value."""
    limit, never = chosen.elide_limit_chars, chosen.never_prune
    return replace(
        preset,
        elide_limit_chars=preset.elide_limit_chars if limit is None else limit,
        never_prune=preset.never_prune if never is None else never,
        pinned=chosen.pinned or (),
    )
