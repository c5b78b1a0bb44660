"""What Lowwater did in a worker, told to the harness; only for workers that have it installed."""

from bench.frameworks.worker import Report, Told
from lowwater import Lowwater
from lowwater.core.events import Compaction, Event, TurnRecord

_FIGURES = ("uncached", "cache_read", "cache_write", "cache_write_long", "output")


class Books:
    """A sink that adds usage and compactions up in a report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        report.compactions = 0

    def record(self, _session: str, event: Event, /) -> None:
        """Count a compaction; what was shortened on arrival was never sent otherwise."""
        if isinstance(event, Compaction) and event.mode != "shorten":
            self._report.compactions = (self._report.compactions or 0) + 1

    def turn(self, _session: str, record: TurnRecord, /) -> None:
        """Add a turn's usage."""
        sums = self._report.recorded
        for name in _FIGURES:
            value = getattr(record.usage, name) if record.usage is not None else 0
            if value:
                sums[name] = sums.get(name, 0) + value


def keeper_for(told: Told, report: Report, *, session: str) -> Lowwater:
    """Return the library as a user has it by default, with one session that knows how small the window is."""
    keeper = Lowwater(model=told.model, sinks=[Books(report)])
    keeper.session(session).learn_context_length(told.window)
    return keeper
