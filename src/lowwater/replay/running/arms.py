"""How kind the provider's cache is: as its rules say, or with prefixes evicted early and calls sent to the wrong machine."""

from collections.abc import Sequence
from random import Random

from msgspec import Struct

_MINUTE = 60.0


class Arm(Struct, frozen=True, kw_only=True):
    """What goes wrong beside what the rules say; the draws depend on the session only, so they are the same for all policies."""

    name: str
    evicted: float = 0.0
    """The chance that a prefix is lost, per minute."""
    missed: float = 0.0
    """The share of calls that find nothing."""
    seed: int = 0


NEUTRAL = Arm(name="neutral")
PESSIMISTIC = Arm(name="pessimistic", evicted=0.04, missed=0.03)
"""About as recorded Codex sessions had it: 97 % of the prompt before was read within a minute, 88 % after one to five."""
ARMS = (NEUTRAL, PESSIMISTIC)


def losses(arm: Arm, session: str, gaps: Sequence[float]) -> tuple[bool, ...]:
    """Return for each call whether it finds nothing for no reason that its policy could know of."""
    draw = Random(f"lowwater arm {arm.seed} {session}")  # noqa: S311 (not for secrets)
    lost: list[bool] = []
    for gap in gaps:
        evicted, missed = draw.random(), draw.random()
        lost.append(evicted > (1 - arm.evicted) ** (gap / _MINUTE) or missed < arm.missed)
    return tuple(lost)
