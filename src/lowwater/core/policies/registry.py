"""The registry of policies: each with its name, its rule, and how the mechanisms behave under it."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Decision, DecisionContext
from lowwater.core.limits import Limits, share_of
from lowwater.core.policies.at_threshold import PRUNING, hermes_classic, prune_naive, runway, threshold
from lowwater.core.policies.guarded import guarded
from lowwater.core.policies.hygiene import hygiene
from lowwater.core.policies.never import never
from lowwater.core.policies.rent_or_buy import rent_or_buy
from lowwater.core.proposals import Preset
from lowwater.errors import BadSetting
from lowwater.settings import Settings, ToolResultSettings
from lowwater.settings.fitting import did_you_mean, shown

OWN = Preset()
"""What a policy asks of the mechanisms unless it was modelled on another system."""
PRICED = replace(OWN, priced=True)
SEED = Preset(elide_limit_chars=200, never_prune=(*OWN.never_prune, "read"), by_value=False)
RUNWAY = replace(SEED, plain_placeholders=True)
CLASSIC = replace(RUNWAY, threshold_floor=False, note_in_system=True)
Rule = Callable[[DecisionContext, Settings], Decision]


class ActionPoint(Struct, frozen=True, kw_only=True):
    """The size from which on a prompt is compacted, and the name of that size for people."""

    at: int
    called: str
    beyond: bool = False
    """A prompt of exactly that size is not compacted yet."""

    def is_reached(self, tokens: int) -> bool:
        """Return whether a prompt of this size is compacted."""
        return tokens > self.at if self.beyond else tokens >= self.at


def _threshold(limits: Limits, _: Settings) -> ActionPoint:
    return ActionPoint(at=limits.threshold, called="threshold")


def _hygiene_limit(limits: Limits, _: Settings) -> ActionPoint:
    return ActionPoint(at=limits.hygiene, called="hygiene limit")


def _budget_threshold(limits: Limits, settings: Settings) -> ActionPoint | None:
    at = share_of(limits.context, settings.leaf.context_threshold)
    return ActionPoint(at=at, called="budget's threshold", beyond=True) if at else None


def _nowhere(_: Limits, __: Settings) -> None:
    return None


class Policy(Struct, frozen=True, kw_only=True):
    """A named rule; `decide` in `safety.py` may overrule what it decides."""

    name: str
    decide: Rule
    preset: Preset
    mechanisms: tuple[str, ...] = (*PRUNING, "summarize")
    """The mechanisms of a compaction by hand, in the order in which they are carried out."""
    avoids_cliffs: bool = True
    """Keep the prompt below the size from which on the whole request is billed at higher prices, whatever that costs.
    A policy that compares prices does not need this: its prices include the cliff."""
    smallest_context: bool = True
    """Use the smallest context length among the model and its fallbacks, rather than that of the model in use."""
    larger_count: bool = False
    """Use the larger of the counted and the reported size of the prompt (docs/specification.md: E)."""
    point: Callable[[Limits, Settings], ActionPoint | None] = _threshold
    """The size from which on the policy asks for compaction; returns None if no size makes it."""

    def acts_at(self, limits: Limits, settings: Settings) -> ActionPoint:
        """Return the size from which on a prompt is compacted: the policy's own, or a lower one that a safety rule sets."""
        ceiling = settings.compression.max_view_tokens
        points = [
            self.point(limits, settings),
            ActionPoint(at=ceiling, called="ceiling", beyond=True) if ceiling is not None else None,
            _hygiene_limit(limits, settings) if settings.compression.hygiene else None,
            ActionPoint(at=limits.cliff, called="cliff") if self.avoids_cliffs and limits.cliff else None,
            ActionPoint(at=limits.wall, called="wall"),
        ]
        return min((point for point in points if point is not None), key=lambda point: point.at)


POLICIES = (
    Policy(
        name="rent-or-buy",
        decide=rent_or_buy,
        preset=PRICED,
        avoids_cliffs=False,
        smallest_context=False,
    ),
    Policy(name="never", decide=never, preset=OWN, avoids_cliffs=False, point=_nowhere),
    Policy(name="threshold", decide=threshold, preset=SEED, mechanisms=("summarize",)),
    Policy(name="summary-only", decide=threshold, preset=SEED, mechanisms=("summarize",)),
    Policy(name="prune-naive", decide=prune_naive, preset=SEED),
    Policy(name="runway", decide=runway, preset=RUNWAY),
    Policy(
        name="guarded",
        decide=guarded,
        preset=OWN,
        mechanisms=("leaf", "condense"),
        larger_count=True,
        point=_budget_threshold,
    ),
    Policy(name="hygiene", decide=hygiene, preset=OWN, point=_hygiene_limit),
    Policy(name="hermes-classic", decide=hermes_classic, preset=CLASSIC),
)
_BY_NAME = {policy.name: policy for policy in POLICIES}


def policy_named(name: str) -> Policy:
    """Return the policy with this name, or raise BadSetting with a suggestion."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    hint = did_you_mean(name, _BY_NAME) or f"; there are {', '.join(_BY_NAME)}"
    raise BadSetting(f"there is no policy {shown(name)}{hint}")


def preset_under(preset: Preset, chosen: ToolResultSettings) -> Preset:
    """Return the preset with the user's settings; a setting of null keeps the preset's value."""
    limit, never = chosen.elide_limit_chars, chosen.never_prune
    return replace(
        preset,
        elide_limit_chars=preset.elide_limit_chars if limit is None else limit,
        never_prune=preset.never_prune if never is None else never,
    )
