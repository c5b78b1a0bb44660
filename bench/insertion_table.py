"""The ways to insert side by side: how many times as long Hermes takes for the same, as figures and as a table."""

from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct

from bench.insertion import ByHermes, ByNothing, ByStore, Inserted, Way
from bench.peers.took import Took

COUNT, FIRST = 10_000, 1_000


class Compared(Struct, frozen=True, kw_only=True):
    """The ways side by side: for each its rounds, in the order of the ways."""

    ways: list[Way]
    rounds: list[list[Inserted]]

    def taken(self, at: int) -> list[Inserted]:
        """The rounds of one way."""
        return [done[at] for done in self.rounds]

    def faster(self, at: int, of: Callable[[Took], float]) -> list[float]:
        """How many times as long Hermes takes for the same, in each round."""
        hermes = self._hermes_like(at)
        return [of(done[hermes].whole) / of(done[at].whole) for done in self.rounds]

    def faster_beyond(self, at: int, of: Callable[[Took], float]) -> list[float]:
        """How many times as long Hermes takes for what it does beyond a row and a commit, in each round."""
        hermes = self._hermes_like(at)
        bare = next(index for index, way in enumerate(self.ways) if isinstance(way, ByNothing))
        return [
            (of(done[hermes].whole) - of(done[bare].whole)) / (of(done[at].whole) - of(done[bare].whole))
            for done in self.rounds
        ]

    def _hermes_like(self, at: int) -> int:
        """Where Hermes does the same as a way: one by one or at once, and as sure."""
        wanted = self.ways[at]
        return next(
            index
            for index, way in enumerate(self.ways)
            if isinstance(way, ByHermes) and (way.at_once, way.sync) == (wanted.at_once, wanted.sync)
        )


def wall(took: Took) -> float:
    return took.wall


def cpu(took: Took) -> float:
    return took.cpu


def table(compared: Compared, title: str) -> list[str]:
    """Return a comparison as Markdown."""
    lines = [
        f"**{title}**",
        "",
        "| | messages/s | Hermes ÷ this | CPU time | Hermes ÷ this | file |",
        "|---|---|---|---|---|---|",
    ]
    for at, way in enumerate(compared.ways):
        taken = compared.taken(at)
        seconds = median(each.whole.wall for each in taken)
        worked = median(each.whole.cpu for each in taken)
        lines.append(
            f"| {way.name} | {COUNT / seconds:,.0f} | {spread(compared.faster(at, wall))} | {worked:.1f} s | "
            f"{spread(compared.faster(at, cpu))} | {taken[0].size / 1e6:.0f} MB |"
        )
    return [*lines, ""]


def spread(ratios: Sequence[float]) -> str:
    """Return the median, and the lowest and highest where they differ."""
    low, mid, high = (f"{ratio:.1f}" for ratio in (min(ratios), median(ratios), max(ratios)))
    return mid if low == high else f"{mid} ({low}–{high})"


def as_used(compared: Compared) -> str:
    """Say how a list is added by a session, and by Hermes, which has one way to add to a session."""
    (one_by_one, *_), (*_, session) = compared.ways, compared.ways
    ratios = [wall(first.whole) / wall(last.whole) for first, *_, last in compared.rounds]
    return f"{session.name} takes the list {spread(ratios)} times as fast as {one_by_one.name} for each."


def beyond(compared: Compared) -> str:
    """Say how the stores compare in what they do beyond a row and a commit."""
    at = next(index for index, way in enumerate(compared.ways) if isinstance(way, ByStore))
    by_clock, by_work = (spread(compared.faster_beyond(at, of)) for of in (wall, cpu))
    return (
        f"Beyond a row and a commit: Hermes ÷ {compared.ways[at].name} is {by_clock}, of CPU time {by_work}."
    )


def linear(compared: Compared) -> str:
    """Say how the time for one message grows from the first thousand to all."""
    told = [
        f"{way.name} {growth(compared.taken(at)):.2f}"
        for at, way in enumerate(compared.ways)
        if not way.at_once
    ]
    return f"CPU time of one message, of {COUNT:,} ÷ of the first {FIRST:,}: {', '.join(told)}."


def growth(taken: Sequence[Inserted]) -> float:
    """Return how many times as long one message takes on the average of all as among the first thousand."""
    return median((each.whole.cpu / COUNT) / (each.first(FIRST).cpu / FIRST) for each in taken)
