"""The policy `hygiene`: compaction at a high fixed size, also used as a safety net around other policies."""

from lowwater.core.decisions import Decision, DecisionContext, Keep, because
from lowwater.core.policies.at_threshold import Trigger, prune_first
from lowwater.core.policies.policy import OWN, Policy, hygiene_point
from lowwater.settings import Settings

LEAST_MESSAGES = 4


def hygiene(now: DecisionContext, _settings: Settings) -> Decision:
    """Compact at 85 % of the context length, or at the wall if that is lower, from four messages on."""
    return _below_hygiene(now) or _too_few_messages(now) or prune_first(now, _at_hygiene(now))


def safety_net(now: DecisionContext) -> Decision | None:
    """Return the decision of `hygiene` if the prompt has reached its limit, for settings that put it around every policy."""
    if _below_hygiene(now) or _too_few_messages(now):
        return None
    return prune_first(now, _at_hygiene(now))


def _below_hygiene(now: DecisionContext) -> Keep | None:
    if now.prompt >= now.limits.hygiene:
        return None
    return Keep(because=because("below-hygiene", prompt=now.prompt, hygiene=now.limits.hygiene))


def _too_few_messages(now: DecisionContext) -> Keep | None:
    if now.messages >= LEAST_MESSAGES:
        return None
    return Keep(
        because=because(
            "too-few-messages",
            prompt=now.prompt,
            hygiene=now.limits.hygiene,
            messages=now.messages,
            least=LEAST_MESSAGES,
        )
    )


def _at_hygiene(now: DecisionContext) -> Trigger:
    return Trigger(limit="hygiene limit", at=now.limits.hygiene, enough=now.limits.target)


POLICIES = (Policy(name="hygiene", decide=hygiene, preset=OWN, point=hygiene_point),)
