"""How well a session's input bill is foreseen from sizes and times, and what its first call has to do with it.

    .venv/bin/python -m bench.foreseen

What a first call reads from the cache was left there by another session. Three ways to take it are compared: as it was
recorded; as nothing; and as the sessions around it tell (`bench.starts`), by their sizes, times and first calls, and
not by anything that its own calls read. Status 1 if the last misses its bounds.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from statistics import median, quantiles

from bench.starts import Begun, Starts
from bench.transcripts import CANONICAL
from lowwater.lab.audit.calls import ModelPrices, Start, audited_calls, foreseen_bill
from lowwater.logs.importers import recordings

BOUNDS: dict[tuple[str, str], tuple[float, float]] = {
    ("agentv", "openai"): (0.12, 0.20),
    ("entireio-cli", "anthropic"): (0.05, 0.20),
    ("entireio-git-sync", "anthropic"): (0.05, 0.32),
    ("entireio-git-sync", "openai"): (0.35, 0.52),
    ("packmind-context-evaluator", "anthropic"): (0.05, 0.20),
}
"""What half of the sessions of a source and provider have to be within, and nine of ten."""


def sessions() -> dict[str, Begun]:
    """Return the recorded sessions with usage, times and prices, by their ids, in the order they began."""
    pricing, found = ModelPrices(), {}
    for recording in recordings([CANONICAL]):
        calls = audited_calls(recording, pricing)
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
    most = quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else errors[0]
    return median(errors), most


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
    print("\n| source, provider | sessions | as recorded | as the sessions around it tell | bound |")
    print("|---|---|---|---|---|")
    missed = []
    for group, keys in by_source(every).items():
        recorded = both([error(every[key], None) for key in keys])
        told = both([errors[key] for key in keys])
        bound = BOUNDS.get(group)
        said = "too few for one" if bound is None else "{:.0%} · {:.0%}".format(*bound)
        print(f"| {', '.join(group)} | {len(keys)} | {_shown(recorded)} | {_shown(told)} | {said} |")
        if bound is not None and (told[0] > bound[0] or told[1] > bound[1]):
            missed.append(group)
    return 1 if missed else 0


def by_source(every: Mapping[str, Begun]) -> dict[tuple[str, str], list[str]]:
    """Return the sessions of each source and provider, by their ids."""
    found: dict[tuple[str, str], list[str]] = {}
    for key, session in every.items():
        found.setdefault((session.folder, session.calls[0].model.provider), []).append(key)
    return dict(sorted(found.items()))


def _shown(errors: tuple[float, float]) -> str:
    return "{:.2%} · {:.1%}".format(*errors)


if __name__ == "__main__":
    sys.exit(main())
