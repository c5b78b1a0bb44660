"""How long something took, by the clock and of the processor."""

import gc
from collections.abc import Callable
from time import perf_counter, process_time

from msgspec import Struct


class Took(Struct, frozen=True, kw_only=True):
    """Seconds on the wall, disk included, and of this process on the processor; they add up."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: "Took") -> "Took":
        return Took(wall=self.wall + other.wall, cpu=self.cpu + other.cpu)


def timed(work: Callable[[], object]) -> Took:
    """Do the work and return how long it took."""
    gc.collect()
    wall, cpu = perf_counter(), process_time()
    work()
    return Took(wall=perf_counter() - wall, cpu=process_time() - cpu)
