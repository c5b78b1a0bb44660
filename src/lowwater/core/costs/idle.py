"""Pauses: whether a cached prefix is let go, kept warm by a minimal call before it expires, or compacted while it is still warm.

It is the question of rent or buy once more: every call that keeps the prefix alive is rent, writing it again is the purchase, and
nobody knows when the user will be back. How long pauses last is known from recorded sessions, and from this one's own.
docs/economics.md has the arithmetic.
"""

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
"""Seconds before the end of a lifetime at which something is done: a call takes a while until its prefix counts as used."""
LASTS = 14_400.0
"""Seconds after which a pause is left alone, whatever would pay."""
_PRIOR = 20
"""As many pauses of the general kind count together with the session's own."""
_MOST_STEPS = 300
"""The most calls that are foreseen for one pause."""


class Lulls(Struct, frozen=True, kw_only=True):
    """How long pauses are in general: of ten thousand times that a model had answered, how often what came next."""

    longer: tuple[tuple[float, int], ...]
    """How often nothing came for more than so many seconds, ends included; ascending."""
    ends: int
    """How often nothing came any more."""

    def share(self, seconds: float) -> float:
        """Return how often nothing came for so many seconds; between the measured points it falls as a power of the time."""
        if seconds <= self.longer[0][0]:
            return float(self.longer[0][1])
        for (least, share), (most, left) in pairwise(self.longer):
            if seconds <= most:
                come, whole = share - self.ends, max(0.5, left - self.ends) / max(0.5, share - self.ends)
                part = log(seconds / least) / log(most / least)
                return float(self.ends + max(0.5, come) * whole**part)
        most, left = self.longer[-1]
        # Behind the last point nothing was measured: half of what is left is assumed to come within twice the time.
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
"""After an answer that waits for the user, in recorded sessions of coding agents (`python -m bench.pauses`)."""
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
"""After an answer that called tools, which then ran, or waited to be allowed."""


class IdleCosts(Struct, frozen=True, kw_only=True):
    """What can be done in a pause costs; all amounts in one unit, whichever that is."""

    lifetime: float
    """Seconds for which a prefix stays cached after it was used."""
    ping: int
    """One call that keeps it warm."""
    lost: int
    """What the next call costs more if the prefix has expired."""
    compact: int | None = None
    """What compacting costs while the prefix is warm; None if that cannot be done."""
    lost_compacted: int = 0
    """What the next call then costs more than one that finds the prefix warm; negative if it costs less."""

    @property
    def period(self) -> float:
        """The seconds between two calls that keep it warm."""
        return self.lifetime - min(MARGIN, self.lifetime / 10)


class IdlePlan(Struct, frozen=True, kw_only=True):
    """What to do in a pause: so many calls that keep the prefix warm, one before each expiry, and then something else."""

    pings: int = 0
    then: Literal["let-go", "compact"] = "let-go"
    period: float
    """Seconds after the last use at which something has to be done."""
    expected: int
    """What the pause is expected to cost from the first expiry on, if it lasts that long."""
    expected_let_go: int
    """The same if nothing is done."""

    @property
    def action(self) -> IdleAction:
        """The first thing to do."""
        return "keep-warm" if self.pings else self.then

    def made_in(self, gap: float) -> int:
        """Return how many calls it makes in a pause of `gap` seconds."""
        return min(self.pings, int(gap / self.period))

    def is_warm_after(self, gap: float, lifetime: float) -> bool:
        """Return whether the prefix is still cached after a pause of `gap` seconds."""
        return gap <= self.made_in(gap) * self.period + lifetime

    def compacts_in(self, gap: float) -> bool:
        """Return whether it compacts in a pause of `gap` seconds."""
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
    """Return what to do in a pause that has lasted `elapsed` seconds since the session's last call when the prefix was last used.

    Nothing is done later than `lasts` seconds after the pause began. It is worked out from the last possible call backwards: at
    each expiry the prefix is let go, or compacted, or kept warm until the next one.
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
    """What can be expected of a pause: the general experience counts as much as a few pauses of the session's own."""

    def __init__(self, gaps: Sequence[float], lulls: Lulls) -> None:
        self._gaps = gaps
        self._lulls = lulls

    def away(self, seconds: float, *, at: float) -> float:
        """Return the chance that nothing comes before `seconds`, given that nothing came before `at`."""
        general = self._lulls.share(seconds) / self._lulls.share(at)
        return self._mixed(general, seconds, at)

    def back_after(self, seconds: float, *, at: float) -> float:
        """Return the chance that something comes, but after `seconds`, given that nothing came before `at`."""
        general = (self._lulls.share(seconds) - self._lulls.ends) / self._lulls.share(at)
        return self._mixed(general, seconds, at)

    def _mixed(self, general: float, seconds: float, at: float) -> float:
        own = sum(gap > at for gap in self._gaps)
        return (_PRIOR * general + sum(gap > seconds for gap in self._gaps)) / (_PRIOR + own)
