"""What a replay found out about one session: values that can be stored, compared and drawn.

Money is in nano-dollars, sizes in the tokens of the model that was replayed.
"""

from typing import Literal

from msgspec import Struct

Kind = Literal["course", "full"]
"""Played on the course, a model of the session in numbers, or by the real engine on the real messages."""

Assumed = Literal["times", "model"]
"""Pauses between calls, or a model with known prices."""

MATTERS = 1.10
"""Compaction matters in a session that would cost more than this many times the optimum without it."""


class Series(Struct, frozen=True, kw_only=True):
    """One number for each call, in order."""

    prompt: tuple[int, ...]
    read: tuple[int, ...]
    """Tokens of the prompt read from the cache."""
    written: tuple[int, ...]
    """All other tokens of the prompt."""
    elided: tuple[int, ...]
    """Tokens that placeholders keep out of the prompt."""
    summarised: tuple[int, ...]
    """Tokens that summaries keep out of it."""
    cost: tuple[int, ...]
    """What the call cost, with the summaries before it, without rework."""
    rework: tuple[int, ...]


class Event(Struct, frozen=True, kw_only=True):
    """A compaction before a call."""

    turn: int
    """The index of the call."""
    mode: str
    """`prune`, `summary`, `condense`, `shorten`."""
    before: int
    after: int
    """The prompt without and with it."""
    because: str = ""
    """The reason's code; `forced` where a peer would have gone above the wall."""


class Cadence(Struct, frozen=True, kw_only=True):
    """What the seven cadence metrics (docs/specification.md: K) are made of, as sums, so that sessions can be put together."""

    turns: int = 0
    events: int = 0
    intervals: int = 0
    """Turns between events, all together."""
    summary_calls: int = 0
    reclaimed: int = 0
    prompt_and_summary_tokens: int = 0
    earliest_changed: int | None = None
    prunes: int = 0
    summaries: int = 0


class Recalled(Struct, frozen=True, kw_only=True):
    """Where later uses were found; on a course nobody asks recall, and what is not in view is not told apart."""

    uses: int = 0
    in_view: int = 0
    one_recall: int | None = None
    """None where it was not measured."""
    causes: dict[str, int] = {}
    """Why those that are gone were not reached."""


class Outcome(Struct, frozen=True, kw_only=True):
    """One policy on one session in one arm."""

    policy: str
    kind: Kind
    arm: str
    is_bounded: bool
    """Whether it has the optimum's actions and no others, so that it cannot cost less."""
    fits: bool = True
    """Whether every prompt fit the window; if not, nothing here counts."""
    cost: int = 0
    """Calls and summaries."""
    summaries: int = 0
    """The part of it that went into summaries."""
    rework: int = 0
    """Recalls of what was used again and no longer in view."""
    recall: Recalled = Recalled()
    cadence: Cadence = Cadence()
    mean_view: float = 0.0
    peak_view: int = 0
    series: Series | None = None
    events: tuple[Event, ...] = ()

    @property
    def total(self) -> int:
        """All it cost, rework included."""
        return self.cost + self.rework


class Bounds(Struct, frozen=True, kw_only=True):
    """What the session costs at least in an arm, rework included."""

    arm: str
    optimum: int | None
    """By the declared actions, with hindsight; None if no schedule of them fits the window."""
    relaxed: int
    """By any actions: tools and system, what is new as text or at its elided size, and the answers."""
    never: int | None
    """With no action before the wall; None if that does not fit."""

    @property
    def matters(self) -> bool:
        """Whether compaction saves enough here to tell policies apart."""
        if self.optimum is None:
            return False
        return self.never is None or self.never > MATTERS * self.optimum


class SessionResult(Struct, frozen=True, kw_only=True):
    """A session under all policies and arms; `skipped` says why there is nothing else."""

    id: str
    agent: str
    path: str
    key: str = ""
    """Tells it from every other session, and from the same one under other options."""
    model: str = ""
    """Whose prices and rules it was replayed with."""
    calls: int = 0
    beyond: int = 0
    """Calls after those, which were left out: the optimum of very long sessions takes too long."""
    fixed: int = 0
    """Tools and system prompt."""
    times: tuple[float, ...] = ()
    """Seconds from the first call to each, for drawing."""
    skipped: str = ""
    recorded: int | None = None
    """What its own calls cost by the usage that was recorded; None if no price or no usage of them is known."""
    assumed: tuple[Assumed, ...] = ()
    """What the recording does not tell and the replay made up."""
    bounds: tuple[Bounds, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    """By kind, arm and policy, in the order the policies have."""

    @property
    def place(self) -> tuple[str, ...]:
        """Where it stands among others, whenever it was finished."""
        return (self.agent, self.id, self.path, self.key)

    def bound(self, arm: str) -> Bounds:
        """Return the bounds of an arm."""
        return next(bounds for bounds in self.bounds if bounds.arm == arm)
