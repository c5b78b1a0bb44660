"""The decision: the named policy, and around it what holds for every policy, in its order (docs/specification.md: A)."""

from lowwater.decide.by_hand import by_hand
from lowwater.decide.byte_limit import over_byte_limit
from lowwater.decide.ceiling import above_ceiling
from lowwater.decide.cliff import over_cliff
from lowwater.decide.cool_down import cooling_down
from lowwater.decide.hygiene import safety_net
from lowwater.decide.policies import Policy, policy_named
from lowwater.decide.reasons import because
from lowwater.decide.thrash import irreducible
from lowwater.decide.wall import at_the_wall
from lowwater.values.decision import Decision, Keep
from lowwater.values.settings import Settings
from lowwater.values.situation import Situation


def decide(now: Situation, settings: Settings, *, policy: Policy | str | None = None) -> Decision:
    """Return what to do before the next call, under the policy of the settings unless another is given or named.

    Switched off is off, even by hand and at the wall. By hand, at the wall and above a ceiling nothing holds a compaction back.
    """
    chosen = policy if isinstance(policy, Policy) else policy_named(policy or settings.compression.policy)
    return (
        _disabled(now, settings)
        or by_hand(now, chosen)
        or at_the_wall(now)
        or over_byte_limit(now)
        or above_ceiling(now, settings)
        or _unless_held_back(now, _wanted(now, settings, chosen))
    )


def _disabled(now: Situation, settings: Settings) -> Keep | None:
    if now.enabled and settings.compression.enabled:
        return None
    return Keep(because=because("disabled", prompt=now.prompt))


def _wanted(now: Situation, settings: Settings, policy: Policy) -> Decision:
    """Return what the numbers ask for: staying below a cliff, hygiene, or the policy's rule."""
    avoided = over_cliff(now) if policy.avoids_cliffs else None
    return avoided or safety_net(now, settings) or policy.decide(now, settings)


def _unless_held_back(now: Situation, wanted: Decision) -> Decision:
    if isinstance(wanted, Keep):
        return wanted
    possible = cooling_down(now, wanted) or wanted
    return possible if isinstance(possible, Keep) else irreducible(now, possible) or possible
