"""The policies with a fixed trigger (`threshold`, `prune-naive`, `runway`, `hermes-classic`), and how every policy picks proposals."""

from collections.abc import Sequence
from math import isfinite

from msgspec import Struct

from lowwater.core.decisions import Compact, Decision, DecisionContext, Fact, Keep, Reason, because
from lowwater.core.limits import share_of
from lowwater.core.mechanisms.mechanism import Reach
from lowwater.core.messages import Span
from lowwater.core.policies.policy import CLASSIC, RUNWAY, SEED, Policy
from lowwater.core.proposals import Proposal
from lowwater.settings import CompressionSettings, Settings

LEAST_TURNS = 10
"""Turns over which growth is measured before `threshold: auto` uses it; until then the threshold is the default of 50 %."""
_AUTO_TURNS = 40
"""Turns of growth that an automatic threshold leaves room for, if half of the view is tool output."""
_AUTO_MIX = 1.5


def threshold(now: DecisionContext, _settings: Settings) -> Decision:
    """At the threshold, replace the middle by a summary; never prune."""
    return below_threshold(now) or summary_only(now, at_threshold(now, enough=now.limits.target))


def prune_naive(now: DecisionContext, _settings: Settings) -> Decision:
    """Prune at the threshold; summarise only if the pruned view would still be at it."""
    return below_threshold(now) or prune_first(now, at_threshold(now, enough=now.limits.threshold - 1))


def runway(now: DecisionContext, _settings: Settings) -> Decision:
    """Prune at the threshold; summarise in the same event unless the pruned view is at or below the target."""
    return below_threshold(now) or prune_first(now, at_threshold(now, enough=now.limits.target))


def hermes_classic(now: DecisionContext, _settings: Settings) -> Decision:
    """Prune whatever there is at the threshold, then summarise, however far the prune got."""
    return below_threshold(now) or _everything(now)


def _everything(now: DecisionContext) -> Decision:
    trigger = at_threshold(now, enough=0)
    prune = pruning(now)
    plan = (*prune, *summaries(now))
    if not plan:
        return Keep(because=because("nothing-offered", **trigger.facts(now)))
    reason = because(
        "prune-and-summary",
        **trigger.facts(now),
        reclaims=now.removes(prune),
        expected=expected_after(now, plan),
    )
    return trigger.compact(plan, reason)


class Trigger(Struct, frozen=True, kw_only=True):
    """The size at which compaction is due, the name of that limit, and the size at which it may stop."""

    limit: str
    at: int
    enough: int

    def facts(self, now: DecisionContext) -> dict[str, Fact]:
        """Return the numbers that show that compaction is due."""
        return {"prompt": now.prompt, "limit": self.limit, "trigger": self.at}

    def compact(self, proposals: tuple[Proposal, ...], reason: Reason) -> Compact:
        """Return the decision to carry out these proposals until `enough` is reached."""
        return Compact(proposals=proposals, because=reason, enough=self.enough, below=self.at)


def at_threshold(now: DecisionContext, *, enough: int) -> Trigger:
    """Return the threshold as a trigger."""
    return Trigger(limit="threshold", at=now.limits.threshold, enough=enough)


def below_threshold(now: DecisionContext) -> Keep | None:
    """Keep a prompt that has not reached the threshold."""
    if now.prompt >= now.limits.threshold:
        return None
    return Keep(because=because("below-threshold", prompt=now.prompt, threshold=now.limits.threshold))


def prune_first(now: DecisionContext, trigger: Trigger) -> Decision:
    """Prune if that reclaims enough to count, and summarise as well unless pruning alone gets to `enough`."""
    prune = pruning(now)
    if not prune:
        return summary_only(now, trigger)
    if now.removes(prune) < now.limits.minimum_prune:
        return _discard_prune(now, trigger, now.removes(prune))
    text = summaries(now)
    pruned = now.after(prune)
    facts = {**trigger.facts(now), "pruned": pruned, "target": trigger.enough}
    if pruned <= trigger.enough:
        return trigger.compact((*prune, *text), because("prune-suffices", **facts))
    if text:
        return trigger.compact((*prune, *text), because("prune-falls-short", **facts))
    return Keep(because=because("prune-alone-falls-short", **facts))


def summary_only(now: DecisionContext, trigger: Trigger) -> Decision:
    """Replace the middle by a summary, without pruning."""
    text = summaries(now)
    if not text:
        return Keep(because=because("nothing-offered", **trigger.facts(now)))
    expected = expected_after(now, text)
    return trigger.compact(text, because("summary-due", **trigger.facts(now), expected=expected))


def _discard_prune(now: DecisionContext, trigger: Trigger, reclaims: int) -> Decision:
    """Decide when pruning reclaims too little to count: it is left out, and the middle is summarised instead."""
    text = summaries(now)
    facts = {**trigger.facts(now), "reclaims": reclaims, "minimum": now.limits.minimum_prune}
    if not text:
        return Keep(because=because("prune-alone-too-small", **facts))
    return trigger.compact(text, because("prune-too-small", **facts))


def useful(now: DecisionContext, *mechanisms: str) -> tuple[Proposal, ...]:
    """Return the proposals of these mechanisms that would make the view smaller, in the order of the mechanisms."""
    return tuple(offer for offer in now.offers(*mechanisms) if now.scaled(offer.removes) > 0)


def middle_edits(now: DecisionContext) -> tuple[Proposal, ...]:
    """Return the useful edits of the middle."""
    return _edits(now, "middle")


def pruning(now: DecisionContext) -> tuple[Proposal, ...]:
    """Return all useful edits, those that shorten outputs in head and tail included."""
    return _edits(now, "middle", "everywhere")


def last_resort(now: DecisionContext) -> tuple[Proposal, ...]:
    """Return the useful edits of whatever is left when everything else was not enough."""
    return _edits(now, "last-resort")


def reach(offer: Proposal) -> Reach:
    """Return where the mechanism of a proposal may change something."""
    from lowwater.core.mechanisms.registry import reach_of  # noqa: PLC0415 - it imports every mechanism

    return reach_of(offer.mechanism)


def _edits(now: DecisionContext, *reaches: Reach) -> tuple[Proposal, ...]:
    """Return the edits that would make the view smaller and reach so far, in the order in which they are carried out."""
    if not now.proposals:
        return ()
    from lowwater.core.mechanisms.registry import order_of, reach_of  # noqa: PLC0415 - it imports every mechanism

    edits = (offer for offer in now.proposals if offer.span is None and now.scaled(offer.removes) > 0)
    reaching = [offer for offer in edits if reach_of(offer.mechanism) in reaches]
    return tuple(sorted(reaching, key=lambda offer: order_of(offer.mechanism)))


def summaries(now: DecisionContext) -> tuple[Proposal, ...]:
    """Return the proposals to summarise the middle: as a whole, or else chunk by chunk."""
    return useful(now, "summarize") or useful(now, "leaf", "condense")


def expected_after(now: DecisionContext, plan: Sequence[Proposal]) -> int:
    """Return the size of the prompt that a plan should leave.

    An edit inside a span that the plan replaces as well does not count twice.
    """
    spans = [offer.span for offer in plan if offer.span is not None]
    edits = [offer for offer in plan if offer.span is None]
    replaced = sum(offer.removes for offer in plan if offer.span is not None)
    beside = sum(_outside(offer, spans) for offer in edits)
    counted = max(replaced + beside, sum(offer.removes for offer in edits))
    return max(0, now.prompt - now.scaled(counted))


def _outside(edit: Proposal, spans: Sequence[Span]) -> int:
    """Return how many tokens an edit removes outside `spans`; an edit without targets is assumed to lie inside them."""
    if not spans:
        return edit.removes
    whole = sum(target.tokens for target in edit.targets)
    outside = sum(
        target.tokens
        for target in edit.targets
        if not any(span.start <= target.item < span.stop for span in spans)
    )
    return edit.removes * outside // whole if whole > 0 else 0


def auto_threshold(
    compression: CompressionSettings,
    *,
    context: int,
    growth: float,
    turns: int,
    tool_share: float,
    head: int = 0,
) -> int | None:
    """Return the threshold that `threshold: auto` stands for; None if another is set, or too few turns were measured.

    `growth` is the mean of tokens per turn over `turns` turns, and `head` the size of what no compaction removes at the start.
    """
    if compression.threshold != "auto" or turns < LEAST_TURNS:
        return None
    if not (isfinite(growth) and growth > 0 and isfinite(tool_share)):
        return None
    summary = min(share_of(context, compression.summary_context_share), compression.summary_max_tokens)
    room = growth * _AUTO_TURNS * (_AUTO_MIX - min(1.0, max(0.0, tool_share)))
    return round(min((head + summary + room) / (1.0 - compression.target_ratio), float(context)))


POLICIES = (
    Policy(name="threshold", decide=threshold, preset=SEED, mechanisms=("summarize",)),
    Policy(name="prune-naive", decide=prune_naive, preset=SEED),
    Policy(name="runway", decide=runway, preset=RUNWAY),
    Policy(name="hermes-classic", decide=hermes_classic, preset=CLASSIC),
)
