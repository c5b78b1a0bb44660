"""Learning from reported usage how to convert a session's counts into the provider's tokens.

    prompt = hidden + scale × counted

`hidden` is what was not counted (a system prompt and tools that the client does not pass on, reminders it injects), and
`scale` is the difference between vocabularies. The scale is learned from the growth between calls, which does not depend
on the hidden part, and starts at what is known about the model's family.
"""

from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.stored_form import stored_as

LOWEST_SCALE = 0.5
HIGHEST_SCALE = 4.0
"""No two vocabularies in use differ by more; a larger ratio has another cause."""
PRIOR_TOKENS = 16_000
"""The family's scale weighs as much as this many counted tokens of growth in the session."""
STRANGEST_GROWTH = 2.0
"""The growth of one call counts as at most this factor away from what the family's scale predicts."""
_MEASURED = 500
"""Counted tokens of growth from which the ratio measured in a session is meaningful."""
REMEMBERED = 10
"""The hidden part is the median over this many of the newest calls."""
LARGEST_REPORT = 1e12
"""No prompt has this many tokens; a report of more is ignored."""


class Observation(
    Struct, frozen=True, kw_only=True, rename=stored_as("observation"), forbid_unknown_fields=True
):
    """One call: the counted size of its prompt, and the size the provider reported."""

    counted: int
    reported: int


class Calibration(
    Struct, frozen=True, kw_only=True, rename=stored_as("calibration"), forbid_unknown_fields=True
):
    """What was learned from a session's usage; an immutable value, replaced after each call."""

    prior: float = 1.0
    """The family's scale."""
    grown_counted: float = 0.0
    grown_reported: float = 0.0
    recent: tuple[Observation, ...] = ()
    """The newest calls since the prompt last shrank."""

    @property
    def scale(self) -> float:
        """The provider's tokens per counted token."""
        start = _clamp(self.prior, LOWEST_SCALE, HIGHEST_SCALE)
        learned = (start * PRIOR_TOKENS + self.grown_reported) / (PRIOR_TOKENS + self.grown_counted)
        return _clamp(learned, LOWEST_SCALE, HIGHEST_SCALE)

    @property
    def hidden(self) -> float:
        """The provider's tokens in every prompt that were not counted; negative if the count is too high."""
        if not self.recent:
            return 0.0
        scale = self.scale
        return median(seen.reported - scale * seen.counted for seen in self.recent)

    def unsure(self, counted_now: int) -> int:
        """Return by how many tokens the next prompt may exceed `next_prompt`.

        The scale follows slowly, so that outliers do not move it. Where a limit must hold, what was counted since the last
        report is assumed to have the measured ratio in full.
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

        An impossible report is ignored. If the prompt shrank, the client or Lowwater has rewritten it: the scale stays,
        and the hidden part is learned again.
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
        expected = _clamp(self.prior, LOWEST_SCALE, HIGHEST_SCALE) * counted_growth
        plausible = _clamp(reported_growth, expected / STRANGEST_GROWTH, expected * STRANGEST_GROWTH)
        return replace(
            self,
            grown_counted=self.grown_counted + counted_growth,
            grown_reported=self.grown_reported + plausible,
            recent=(*self.recent, now)[-REMEMBERED:],
        )

    def restart(self) -> "Calibration":
        """Return the calibration for a conversation that was rewritten: only the scale stays."""
        return replace(self, recent=())

    def predict(self, counted: int) -> int:
        """Return the size that will be reported for a prompt of `counted` tokens, regardless of the last report."""
        scaled = self.scale * counted
        return round(max(self.hidden + scaled, scaled / 2))

    def next_prompt(self, counted_now: int) -> int:
        """Return the expected size of the next prompt: the last reported one plus what was counted since.

        Before the first report it is `predict`.
        """
        if not self.recent:
            return self.predict(counted_now)
        last = self.recent[-1]
        grown = last.reported + self.scale * (counted_now - last.counted)
        return round(max(grown, self.scale * counted_now / 2))


def _clamp(value: float, lowest: float, highest: float) -> float:
    """Return `value` clamped to two bounds; NaN becomes the lower one."""
    return min(max(value, lowest), highest) if value == value else lowest  # noqa: PLR0124  # NaN is not itself
