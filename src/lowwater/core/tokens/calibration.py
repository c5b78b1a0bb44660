"""Learns from reported usage how a session's counts become the provider's tokens.

    prompt = hidden + scale × counted

`hidden` is what the count cannot see (a system prompt and tools the client keeps to itself, reminders it injects) and
`scale` the difference between vocabularies. The scale is learned from growth between calls, which the hidden part does
not touch, and starts at what is known of the model's family.
"""

from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.stored_form import stored_as

LOWEST_SCALE = 0.5
HIGHEST_SCALE = 4.0
"""No vocabulary in use is further from another than this; whatever says so is something else."""
PRIOR_TOKENS = 16_000
"""The family's scale weighs as much as this many counted tokens of growth in the session itself."""
STRANGEST_GROWTH = 2.0
"""One call moves the scale as if its growth were at most this factor away from what the family's scale predicts."""
_MEASURED = 500
"""Counted tokens of growth from which on the ratio measured in a session says something."""
REMEMBERED = 10
"""The hidden part is the median over this many newest calls."""
LARGEST_REPORT = 1e12
"""No prompt has this many tokens; a report that says so is no report."""


class Observation(
    Struct, frozen=True, kw_only=True, rename=stored_as("observation"), forbid_unknown_fields=True
):
    """One call: what was counted before it, and the prompt the provider reported for it."""

    counted: int
    reported: int


class Calibration(
    Struct, frozen=True, kw_only=True, rename=stored_as("calibration"), forbid_unknown_fields=True
):
    """What one session's usage has taught so far; a new value after each call."""

    prior: float = 1.0
    """The family's scale."""
    grown_counted: float = 0.0
    grown_reported: float = 0.0
    recent: tuple[Observation, ...] = ()
    """The newest calls since the prompt last shrank."""

    @property
    def scale(self) -> float:
        """How many of the provider's tokens one counted token is."""
        start = _within(self.prior, LOWEST_SCALE, HIGHEST_SCALE)
        learned = (start * PRIOR_TOKENS + self.grown_reported) / (PRIOR_TOKENS + self.grown_counted)
        return _within(learned, LOWEST_SCALE, HIGHEST_SCALE)

    @property
    def hidden(self) -> float:
        """How many of the provider's tokens stand in every prompt unseen; below zero if the count is too high."""
        if not self.recent:
            return 0.0
        scale = self.scale
        return median(seen.reported - scale * seen.counted for seen in self.recent)

    def unsure(self, counted_now: int) -> int:
        """Return by how much `next_prompt` may fall short: what came since the last report may be as dear as all that was measured.

        The scale follows slowly, so that nothing odd moves it; where a limit must hold, what was measured counts in full.
        """
        if not self.recent or counted_now <= self.recent[-1].counted:
            return 0
        last = self.recent[-1]
        if self.grown_counted >= _MEASURED:
            measured = self.grown_reported / self.grown_counted
        else:
            measured = last.reported / max(1, last.counted)
            measured = measured if measured <= STRANGEST_GROWTH * self.scale else 0.0
        return round(max(0.0, measured - self.scale) * (counted_now - last.counted))

    def observe(self, *, counted: int, reported: float) -> "Calibration":
        """Return the calibration after a call whose prompt was `counted` by us and `reported` by the provider.

        A report that no prompt can have teaches nothing. Where the prompt shrank, the client or Lowwater has
        rewritten it: the scale stays, the hidden part is learned anew.
        """
        if not 1 <= reported <= LARGEST_REPORT or counted < 0:
            return self
        now = Observation(counted=counted, reported=int(reported))
        if not self.recent:
            return replace(self, recent=(now,))
        last = self.recent[-1]
        counted_growth, reported_growth = now.counted - last.counted, now.reported - last.reported
        if counted_growth < 0 or reported_growth < 0:
            return replace(self, recent=(now,))
        expected = _within(self.prior, LOWEST_SCALE, HIGHEST_SCALE) * counted_growth
        believed = _within(reported_growth, expected / STRANGEST_GROWTH, expected * STRANGEST_GROWTH)
        return replace(
            self,
            grown_counted=self.grown_counted + counted_growth,
            grown_reported=self.grown_reported + believed,
            recent=(*self.recent, now)[-REMEMBERED:],
        )

    def restart(self) -> "Calibration":
        """Return the calibration for a conversation that was rewritten: the scale stays, the rest is forgotten."""
        return replace(self, recent=())

    def predict(self, counted: int) -> int:
        """Return how large a prompt of `counted` tokens will be reported, whatever was sent before it."""
        scaled = self.scale * counted
        return round(max(self.hidden + scaled, scaled / 2))

    def next_prompt(self, counted_now: int) -> int:
        """Return how large the next prompt will be: the last one reported and what was counted since.

        Before the first report it is `predict`.
        """
        if not self.recent:
            return self.predict(counted_now)
        last = self.recent[-1]
        grown = last.reported + self.scale * (counted_now - last.counted)
        return round(max(grown, self.scale * counted_now / 2))


def _within(value: float, lowest: float, highest: float) -> float:
    """Return `value` brought between two bounds; what is no number becomes the lowest."""
    return min(max(value, lowest), highest) if value == value else lowest  # noqa: PLR0124  # NaN is not itself
