"""How well a session's input bill is foreseen from sizes and times, and what its first call has to do with it.

    .venv/bin/python -m bench.foreseen

What a first call reads from the cache was left there by another session. Three ways to take it are compared: as it was
recorded; as nothing; and as the sessions around it tell (`bench.starts`), by their sizes, times and first calls, and
not by anything that its own calls read. Status 1 if the last misses its bounds.
"""

import sys
from collections.abc import Callable, Sequence
from hashlib import blake2b
from statistics import median, quantiles

from bench.starts import Begun, Starts
from bench.transcripts import CANONICAL
from lowwater.replay.audit.calls import calls_of
from lowwater.replay.audit.foreseen import Start, foreseen_bill
from lowwater.replay.audit.pricing import Pricing
from lowwater.replay.importing.importing import recordings

MEDIAN, NINE_OF_TEN = 0.05, 0.20


def sessions() -> dict[str, Begun]:
    """Return the recorded sessions with usage, times and prices, by their ids, in the order they began."""
    pricing, found = Pricing(), {}
    for recording in recordings([CANONICAL]):
        calls = calls_of(recording, pricing)
        bill = foreseen_bill(calls)
        told = tuple(call for call in calls if call.usage is not None)
        if bill is None or not bill.recorded or not any(call.prices and call.at for call in told):
            continue
        folder = recording.path.rsplit("/", 2)[-2]
        found[recording.id] = Begun(agent=recording.agent, folder=folder, calls=told)
    return dict(sorted(found.items(), key=lambda each: each[1].at))


def error(session: Begun, start: Start | None) -> float:
    """Return by what share of the recorded input bill the foreseen one is off."""
    bill = foreseen_bill(session.calls, start)
    assert bill is not None
    return abs(bill.error)


def both(errors: Sequence[float]) -> tuple[float, float]:
    """Return the median of some errors, and what nine of ten are within."""
    return median(errors), quantiles(errors, n=10, method="inclusive")[-1]


def main() -> int:
    """Print the errors of each way."""
    if not CANONICAL.is_dir():
        print(f"no recorded sessions at {CANONICAL}")
        return 0
    every = sessions()
    starts = Starts(tuple(every.values()))
    ways: dict[str, Callable[[Begun], Start | None]] = {
        "as recorded": lambda _: None,
        "nothing": lambda _: Start(fixed=0, read=0),
        "as the sessions around it tell": starts.of,
    }
    read = sum(session.read > 0 for session in every.values())
    print(f"{len(every)} sessions; {read} first calls read something\n")
    print(
        "| what the first call reads | error of the input bill, median | nine of ten | tune half | report half |"
    )
    print("|---|---|---|---|---|")
    for name, way in ways.items():
        errors = {each: error(session, way(session)) for each, session in every.items()}
        halves = [
            [each for key, each in errors.items() if blake2b(key.encode()).digest()[0] % 2 == half]
            for half in (0, 1)
        ]
        middle, most = both(list(errors.values()))
        of_halves = " | ".join("{:.2%} · {:.1%}".format(*both(half)) for half in halves)
        print(f"| {name} | {middle:.2%} | {most:.1%} | {of_halves} |")
    return 0 if middle <= MEDIAN and most <= NINE_OF_TEN else 1


if __name__ == "__main__":
    sys.exit(main())
