"""How precise the damage report is: what it takes for repeats after compactions, against labels made by reading.

    .venv/bin/python -m bench.damage

`damage_labels.csv` has a row for each model call within 30 calls after a compaction that the report says repeats something:
the session, the numbers of the call after the compaction and of the call itself, whether what it does had really been read or
done before the compaction, and why in a word. The rules were fitted mostly on `FITTED`; the others are no clean hold-out. A call that is
found but has no label is listed, so that a change of the rules shows what is to be read. Each session counts once, in the
canonical form if there is one; `RAW` holds the others, as their clients wrote them.
"""

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from bench.every_log import TRANSCRIPTS
from bench.transcripts import ABSENT, CANONICAL
from lowwater.lab.audit.calls import ModelPrices, audited_calls
from lowwater.lab.audit.damage import stretches_of
from lowwater.logs.importers import recordings

LABELS = Path(__file__).with_name("damage_labels.csv")
FITTED = "entireio-cli"
SOURCES = (FITTED, "packmind-context-evaluator", "agentv", "entireio-git-sync")
"""The sources with compactions."""
RAW = ("claude-code", "codex")
"""The folders of logs as Claude Code and Codex wrote them."""
NEEDED = 0.9
REPEATED = "repeated"


class Found(Struct, frozen=True, kw_only=True):
    """A call that the report says repeats something from before a compaction."""

    session: str
    compaction: int
    call: int


class Source(Struct, frozen=True, kw_only=True):
    """What the report finds in a source."""

    name: str
    compactions: int
    found: tuple[Found, ...]


def sources() -> Iterator[Source]:
    """Yield what the report finds in each source; of the raw logs, in those sessions that no source before has."""
    pricing, seen = ModelPrices(), set[tuple[str, str]]()
    for folder in (*(CANONICAL / name for name in SOURCES), *(TRANSCRIPTS / name for name in RAW)):
        compactions, found = 0, list[Found]()
        for recording in recordings([folder]):
            key = recording.agent, recording.id
            if not recording.compactions or key in seen:
                continue
            seen.add(key)
            for stretch in stretches_of(recording, audited_calls(recording, pricing), day_of=lambda _: ""):
                if stretch.is_compaction:
                    compactions += 1
                    found += (
                        Found(session=recording.id, compaction=stretch.call, call=stretch.call + at)
                        for at in stretch.repeating
                    )
        yield Source(name=folder.name, compactions=compactions, found=tuple(found))


def labels() -> dict[Found, bool]:
    """Return the labels, whether each call really repeats something."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        return {
            Found(session=row["session"], compaction=int(row["compaction"]), call=int(row["call"])): row[
                "label"
            ]
            == REPEATED
            for row in csv.DictReader(file)
        }


def precision(found: Sequence[Found], labelled: dict[Found, bool], name: str) -> float:
    """Print the precision over calls and over compactions, and return the first."""
    known = [each for each in found if each in labelled]
    right = [each for each in known if labelled[each]]
    events = {(each.session, each.compaction) for each in known}
    true = {(each.session, each.compaction) for each in right}
    of_calls = len(right) / len(known) if known else 0.0
    print(
        f"{name:<28}{len(right):>4} of {len(known):>3} calls {of_calls:>6.1%}   {len(true):>3} of {len(events):>3} compactions"
        f"   {len(found) - len(known):>3} not labelled"
    )
    return of_calls


def main() -> int:
    """Print the precision by source; return 1 if it is too low or a call has no label."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    labelled = labels()
    every = list(sources())
    for source in every:
        precision(source.found, labelled, f"{source.name}{' (fitted)' if source.name == FITTED else ''}")
    left_out = [each for source in every if source.name != FITTED for each in source.found]
    found = [each for source in every for each in source.found]
    shares = (precision(left_out, labelled, "left out"), precision(found, labelled, "all"))
    events = len({(each.session, each.compaction) for each in found})
    print(
        f"{sum(source.compactions for source in every)} compactions in all; the report finds a repeat after {events}"
    )
    unread = [each for each in found if each not in labelled]
    for each in unread:
        print(f"not labelled: {each.session} compaction {each.compaction} call {each.call}")
    return int(bool(unread) or min(shares) < NEEDED)


if __name__ == "__main__":
    sys.exit(main())
