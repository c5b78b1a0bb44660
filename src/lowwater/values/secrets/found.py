"""Where in a text a secret stands, and of what kind it is."""

from typing import NamedTuple


class Found(NamedTuple):
    """A secret from `start` to `end`; ordered by where it begins. A named tuple, for there may be very many."""

    start: int
    end: int
    kind: str
