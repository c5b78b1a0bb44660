"""How precise and how complete the damage report is, against labels made by reading.

    .venv/bin/python -m bench.damage

`damage_labels.csv` has a row for each model call within 30 calls after a compaction that the report says repeats something:
the session, the numbers of the call after the compaction and of the call itself, whether what it does had really been read or
done before the compaction (`repeated` or `new`), and why in a word. Each compaction after which the report finds nothing has a
row, too: `missed` with the first call that repeats something, or `none` without a call. Something is repeated if all that it
shows had been shown before and is unchanged, by whichever tool: by another command, or in the answer to an edit. The rules were
fitted mostly on `FITTED`; the others are no clean hold-out. What has no label is listed, so that a change of the rules shows
what is to be read. Each session counts once, in the canonical form if there is one; `RAW` holds the others, as their clients
wrote them.
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
REPEATED, MISSED = "repeated", "missed"


Place = tuple[str, int]
"""A compaction: its session, and the number of the call after it."""


class Found(Struct, frozen=True, kw_only=True):
    """A call that the report says repeats something from before a compaction."""

    session: str
    compaction: int
    call: int


class Source(Struct, frozen=True, kw_only=True):
    """What the report finds in a source."""

    name: str
    compactions: tuple[Place, ...]
    found: tuple[Found, ...]


def sources() -> Iterator[Source]:
    """Yield what the report finds in each source; of the raw logs, in those sessions that no source before has."""
    pricing, seen = ModelPrices(), set[tuple[str, str]]()
    for folder in (*(CANONICAL / name for name in SOURCES), *(TRANSCRIPTS / name for name in RAW)):
        compactions, found = list[Place](), list[Found]()
        for recording in recordings([folder]):
            key = recording.agent, recording.id
            if not recording.compactions or key in seen:
                continue
            seen.add(key)
            for stretch in stretches_of(recording, audited_calls(recording, pricing), day_of=lambda _: ""):
                if stretch.is_compaction:
                    compactions.append((recording.id, stretch.call))
                    found += (
                        Found(session=recording.id, compaction=stretch.call, call=stretch.call + at)
                        for at in stretch.repeating
                    )
        yield Source(name=folder.name, compactions=tuple(compactions), found=tuple(found))


class Labels(Struct, frozen=True, kw_only=True):
    """What was labelled by reading."""

    calls: dict[Found, bool]
    """Of calls that the report finds, whether each really repeats something."""
    places: dict[Place, bool]
    """Of compactions after which it finds nothing, whether something is repeated all the same."""


def labels() -> Labels:
    """Return the labels."""
    calls, places = dict[Found, bool](), dict[Place, bool]()
    with LABELS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            session, compaction, label = row["session"], int(row["compaction"]), row["label"]
            if label in (MISSED, "none"):
                places[session, compaction] = label == MISSED
            else:
                call = Found(session=session, compaction=compaction, call=int(row["call"]))
                calls[call] = label == REPEATED
    return Labels(calls=calls, places=places)


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


def recall(every: Sequence[Source], labelled: Labels, name: str) -> list[Place]:
    """Print after how many compactions of those with a repeat the report finds one; return those that nobody has read."""
    true = {
        (each.session, each.compaction)
        for source in every
        for each in source.found
        if labelled.calls.get(each, False)
    }
    found = {(each.session, each.compaction) for source in every for each in source.found}
    without = [place for source in every for place in source.compactions if place not in found]
    missed = sum(labelled.places.get(place, False) for place in without)
    events = len(true) + missed
    share = len(true) / events if events else 0.0
    print(
        f"{name:<28}{len(true):>4} of {events:>3} compactions with a repeat {share:>6.1%}   "
        f"{sum(len(source.compactions) for source in every):>3} compactions, {len(without)} without a finding, {missed} of them missed"
    )
    return [place for place in without if place not in labelled.places]


def main() -> int:
    """Print precision and recall by source; return 1 if the precision is too low or something has no label."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    labelled = labels()
    every = [source for source in sources() if source.compactions]
    print("Right of what is found")
    for source in every:
        name = f"{source.name}{' (fitted)' if source.name == FITTED else ''}"
        precision(source.found, labelled.calls, name)
    left_out = [each for source in every if source.name != FITTED for each in source.found]
    found = [each for source in every for each in source.found]
    shares = (precision(left_out, labelled.calls, "left out"), precision(found, labelled.calls, "all"))
    print("Found of what there is")
    for source in every:
        recall([source], labelled, f"{source.name}{' (fitted)' if source.name == FITTED else ''}")
    recall([source for source in every if source.name != FITTED], labelled, "left out")
    without = recall(every, labelled, "all")
    unread = [each for each in found if each not in labelled.calls]
    for each in unread:
        print(f"not labelled: {each.session} compaction {each.compaction} call {each.call}")
    for session, compaction in without:
        print(f"not labelled: {session} compaction {compaction}, after which nothing is found")
    return int(bool(unread or without) or min(shares) < NEEDED)


if __name__ == "__main__":
    sys.exit(main())
