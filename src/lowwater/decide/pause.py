"""A pause after something went wrong: it doubles each time, has a longest, and ends by itself."""

from math import ceil, isfinite

from msgspec import Struct

_MOST_DOUBLINGS = 20


class Pause(Struct, frozen=True, kw_only=True):
    """How long to wait after the first failure, and after however many."""

    first: float
    longest: float

    def seconds(self, failures: int) -> float:
        """Return the length of the pause after this many failures in a row."""
        if failures <= 0:
            return 0.0
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))

    def seconds_left(self, failures: int, *, since: float, at: float) -> int:
        """Return how much of it is left at `at`, in whole seconds; a failure in the future is a clock set back."""
        elapsed = at - since
        length = self.seconds(failures)
        return ceil(length - elapsed) if isfinite(elapsed) and 0 <= elapsed < length else 0
