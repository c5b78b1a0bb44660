"""How well a session's input bill is foreseen from its sizes and times, and what its first call has to do with it.

    .venv/bin/python -m bench.foreseen

What a first call reads from the cache was left there by another session. Four ways to take it are compared: as it was
recorded; as nothing; as the first call of the session before read, in the same folder and with the same model; and the
same only if a recorded session of that folder called the model within the hour before.
"""

import sys
from collections.abc import Callable, Sequence
from statistics import median, quantiles

from msgspec import Struct

from bench.transcripts import CANONICAL
from lowwater.economics.bill import cost_at
from lowwater.replay.audit.calls import Call, calls_of
from lowwater.replay.audit.foreseen import foresee, foreseen_bill
from lowwater.replay.audit.pricing import Pricing
from lowwater.replay.importing.importing import recordings
from lowwater.values.usage import Usage

_HOUR = 3_600.0


class Session(Struct, frozen=True, kw_only=True):
    """What one recorded session says of its first call, and its input bill as recorded and foreseen, in nano-dollars."""

    folder: str
    first: Call
    foreseen: Usage
    """The first call as foreseen with what it read as recorded."""
    times: tuple[float, ...]
    bill: int
    recorded: int

    @property
    def read(self) -> int:
        """What the first call read."""
        return self.first.usage.cache_read if self.first.usage else 0

    def error(self, read: int) -> float:
        """Return by what share the bill is off if the first call is taken to read so much."""
        prices = self.first.prices
        assert prices is not None
        other = min(read, self.foreseen.prompt) - self.foreseen.cache_read
        fresh = prices.cache_write if self.foreseen.cache_write else prices.input
        if self.foreseen.cache_write_long and prices.cache_write_long is not None:
            fresh = prices.cache_write_long
        kept = cost_at(Usage(cache_read=abs(other)), prices)
        written = abs(other) * fresh // 1_000
        change = (kept - written) if other > 0 else (written - kept)
        return abs(self.bill + change - self.recorded) / self.recorded


def sessions() -> list[Session]:
    """Return the recorded sessions with usage and prices, in the order they began."""
    pricing, found = Pricing(), []
    for recording in recordings([CANONICAL]):
        calls = calls_of(recording, pricing)
        bill = foreseen_bill(calls)
        pairs = [
            (call, seen)
            for call, seen in zip(calls, foresee(calls), strict=True)
            if seen is not None and call.prices is not None and call.at is not None
        ]
        if bill is None or not bill.recorded or not pairs:
            continue
        found.append(
            Session(
                folder=recording.path.rsplit("/", 2)[-2],
                first=pairs[0][0],
                foreseen=pairs[0][1],
                times=tuple(call.at or 0.0 for call, _ in pairs),
                bill=bill.foreseen,
                recorded=bill.recorded,
            )
        )
    return sorted(found, key=lambda session: session.times[0])


def _like(earlier: Sequence[Session], session: Session) -> list[Session]:
    key = (session.folder, session.first.model.name)
    return [other for other in earlier if (other.folder, other.first.model.name) == key]


def as_before(earlier: Sequence[Session], session: Session) -> int:
    """Return what the first call of the session before read."""
    like = _like(earlier, session)
    return like[-1].read if like else 0


def as_near(earlier: Sequence[Session], session: Session) -> int:
    """Return the same of the last that read anything, if one of them called within the hour before."""
    like, began = _like(earlier, session), session.times[0]
    is_near = any(0 < began - at <= _HOUR for other in like for at in other.times)
    return next((other.read for other in reversed(like) if other.read), 0) if is_near else 0


def main() -> int:
    """Print the errors of the four ways."""
    if not CANONICAL.is_dir():
        print(f"no recorded sessions at {CANONICAL}")
        return 0
    every = sessions()
    ways: dict[str, Callable[[int, Session], int]] = {
        "as recorded": lambda _, session: session.read,
        "nothing": lambda _, _session: 0,
        "as the session before": lambda at, session: as_before(every[:at], session),
        "that, if one called within the hour": lambda at, session: as_near(every[:at], session),
    }
    print(f"{len(every)} sessions; {sum(session.read > 0 for session in every)} first calls read something\n")
    print("| what the first call reads | error of the input bill, median | nine of ten |\n|---|---|---|")
    for name, way in ways.items():
        errors = [session.error(way(at, session)) for at, session in enumerate(every)]
        most = quantiles(errors, n=10, method="inclusive")[-1]
        print(f"| {name} | {median(errors):.2%} | {most:.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
