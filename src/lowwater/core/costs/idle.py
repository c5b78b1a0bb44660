"""What to do in a pause, before the cached prefix expires: let it go, keep it warm by a minimal call, or compact while it is warm.

This is rent or buy again: each call that keeps the prefix warm is rent, writing the prefix again is the purchase, and nobody
knows when the user will be back. How long pauses last is estimated from recorded sessions and from the session's own pauses.
docs/economics.md has the arithmetic.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import Literal

from msgspec import Struct

IdleAction = Literal["let-go", "keep-warm", "compact"]
IdleMode = Literal["off", "compact", "keep-warm", "auto"]
"""What may be done in a pause: nothing, one of the two, or whichever is cheaper."""

KEPT_WARM = "kept-warm"
"""The decision in the record of a call that kept a prefix warm."""
MARGIN = 20.0
"""How many seconds before the prefix expires to act: it takes a while until a call counts as using its prefix."""
LASTS = 14_400.0
"""Seconds into a pause after which nothing more is done, even if it would pay."""
_PRIOR = 20
"""The weight of `Lulls`: it counts as much as this many pauses of the session's own."""
_MOST_STEPS = 300
"""The most calls that are planned for one pause."""


class Lulls(Struct, frozen=True, kw_only=True):
    """How long pauses are in recorded sessions: counts out of 10,000 answers of a model."""

    longer: tuple[tuple[float, int], ...]
    """Pairs of seconds, ascending, and how many answers were followed by no call for longer than that, or by none at all."""
    ends: int
    """How many answers were the last of their session."""

    def share(self, seconds: float) -> float:
        """Return how many answers were followed by no call within `seconds`, interpolated as a power law between measured points."""
        if seconds <= self.longer[0][0]:
            return float(self.longer[0][1])
        for (least, share), (most, left) in pairwise(self.longer):
            if seconds <= most:
                come, whole = share - self.ends, max(0.5, left - self.ends) / max(0.5, share - self.ends)
                part = log(seconds / least) / log(most / least)
                return float(self.ends + max(0.5, come) * whole**part)
        most, left = self.longer[-1]
        # Beyond the last measured point, half of the remaining calls are assumed to come within twice the time.
        return self.ends + max(0.5, left - self.ends) * most / seconds


USER_LULLS = Lulls(
    longer=(
        (1, 9_973),
        (60, 8_032),
        (300, 4_260),
        (600, 3_162),
        (900, 2_756),
        (1_800, 2_300),
        (3_600, 1_964),
        (7_200, 1_794),
        (14_400, 1_716),
        (43_200, 1_604),
        (86_400, 1_523),
    ),
    ends=1_511,
)
"""After answers that left the next step to the user, in recorded sessions of coding agents (`python -m bench.pauses`)."""
TOOL_LULLS = Lulls(
    longer=(
        (1, 9_944),
        (60, 551),
        (300, 136),
        (600, 81),
        (900, 62),
        (1_800, 42),
        (3_600, 31),
        (7_200, 26),
        (14_400, 22),
        (43_200, 20),
        (86_400, 18),
    ),
    ends=18,
)
"""After answers that called tools, which then ran or waited for permission."""


class IdleCosts(Struct, frozen=True, kw_only=True):
    """The costs of each thing that can be done in a pause, all in the same unit, whichever that is."""

    lifetime: float
    """Seconds for which a prefix stays cached after it was used."""
    ping: int
    """One call that keeps it warm."""
    lost: int
    """How much more the next call costs if the prefix has expired."""
    compact: int | None = None
    """What compacting costs while the prefix is warm; None if it is not possible."""
    lost_compacted: int = 0
    """How much more the next call then costs than one with a warm, uncompacted prefix; negative if it costs less."""

    @property
    def period(self) -> float:
        """The seconds between two calls that keep it warm."""
        return self.lifetime - min(MARGIN, self.lifetime / 10)


class IdlePlan(Struct, frozen=True, kw_only=True):
    """What to do in a pause: first `pings` calls that keep the prefix warm, one before each expiry, then `then`."""

    pings: int = 0
    then: Literal["let-go", "compact"] = "let-go"
    period: float
    """Seconds after the prefix was last used at which to act."""
    expected: int
    """The expected cost of the pause from shortly before the first expiry on, if it lasts until then."""
    expected_let_go: int
    """The same if nothing is done."""

    @property
    def action(self) -> IdleAction:
        """The first thing to do."""
        return "keep-warm" if self.pings else self.then

    def made_in(self, gap: float) -> int:
        """Return how many calls the plan makes in a pause of `gap` seconds."""
        return min(self.pings, int(gap / self.period))

    def is_warm_after(self, gap: float, lifetime: float) -> bool:
        """Return whether the prefix is still cached after a pause of `gap` seconds."""
        return gap <= self.made_in(gap) * self.period + lifetime

    def compacts_in(self, gap: float) -> bool:
        """Return whether the plan compacts in a pause of `gap` seconds."""
        return self.then == "compact" and gap >= (self.pings + 1) * self.period


class _Best(Struct, frozen=True, kw_only=True):
    cost: float
    pings: int = 0
    then: Literal["let-go", "compact"] = "let-go"


def plan_pause(
    costs: IdleCosts,
    *,
    mode: IdleMode = "auto",
    elapsed: float = 0.0,
    lasts: float = LASTS,
    gaps: Sequence[float] = (),
    lulls: Lulls = USER_LULLS,
) -> IdlePlan:
    """Return the plan with the lowest expected cost.

    `elapsed` is how long the pause had lasted when the prefix was last used: 0 unless it was kept warm since. Nothing is done later
    than `lasts` seconds into the pause; `gaps` are the lengths of the session's own pauses. The plan is worked out backwards from
    the last possible call: before each expiry the prefix is let go, compacted, or kept warm until the next expiry.
    """
    period = costs.period
    chances = _Chances(gaps, lulls)
    may_ping = mode in ("keep-warm", "auto")
    steps = max(0, min(_MOST_STEPS, int((lasts - elapsed) / period)))
    later: _Best | None = None
    first = _Best(cost=costs.lost * chances.back_after(elapsed + costs.lifetime, at=elapsed))
    for step in range(steps, 0, -1):
        at = elapsed + step * period
        let_go = _Best(cost=costs.lost * chances.back_after(at + costs.lifetime - period, at=at))
        choices = [let_go]
        if costs.compact is not None and mode in ("compact", "auto"):
            spent = costs.compact + costs.lost_compacted * chances.back_after(at, at=at)
            choices.append(_Best(cost=spent, then="compact"))
        if may_ping and later is None:
            expired = chances.back_after(at + costs.lifetime, at=at)
            choices.append(_Best(cost=costs.ping + costs.lost * expired, pings=1))
        elif may_ping and later is not None:
            left = chances.away(at + period, at=at)
            choices.append(_Best(cost=costs.ping + left * later.cost, pings=later.pings + 1, then=later.then))
        later = min(choices, key=lambda each: each.cost)
        first = let_go
    best = later or first
    return IdlePlan(
        pings=best.pings,
        then=best.then,
        period=period,
        expected=round(best.cost),
        expected_let_go=round(first.cost),
    )


class _Chances:
    """The chances that a pause goes on or ends, from `lulls` and the session's own `gaps`."""

    def __init__(self, gaps: Sequence[float], lulls: Lulls) -> None:
        self._gaps = sorted(gaps)
        self._lulls = lulls

    def away(self, seconds: float, *, at: float) -> float:
        """Return the chance that no call comes within `seconds`, given that none came within `at`."""
        general = self._lulls.share(seconds) / self._lulls.share(at)
        return self._mixed(general, seconds, at)

    def back_after(self, seconds: float, *, at: float) -> float:
        """Return the chance that a call comes, but later than `seconds`, given that none came within `at`."""
        general = (self._lulls.share(seconds) - self._lulls.ends) / self._lulls.share(at)
        return self._mixed(general, seconds, at)

    def _mixed(self, general: float, seconds: float, at: float) -> float:
        return (_PRIOR * general + self._longer(seconds)) / (_PRIOR + self._longer(at))

    def _longer(self, seconds: float) -> int:
        """Return how many of the session's own pauses lasted longer."""
        return len(self._gaps) - bisect_right(self._gaps, seconds)
