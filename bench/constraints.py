"""Measures whether what the user laid down is recognised, and stands in the view after compactions: `python -m bench.constraints [SECTION …]`.

The sections are recognition and planted. `standing_labels.csv` has the labels of recorded messages, `constraints.csv` the constraints that are planted.
"""

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.core.summary.activity import own_words
from lowwater.core.summary.instructions import standing_instructions

LABELS = Path(__file__).with_name("standing_labels.csv")
PLANTED = Path(__file__).with_name("constraints.csv")
LEFT_OUT = frozenset({"agentv", "entireio-git-sync"})
"""The sources whose messages were not looked at while the recogniser was written."""


class Planted(Struct, frozen=True, kw_only=True):
    """A constraint in one wording, with what is said around it."""

    kind: str
    language: str
    before: str
    instruction: str
    after: str

    @property
    def message(self) -> str:
        """The whole message of the user."""
        return " ".join(filter(None, (self.before, self.instruction, self.after)))


def planted() -> list[Planted]:
    """Return the constraints in all their wordings."""
    with PLANTED.open(encoding="utf-8", newline="") as file:
        return [Planted(**row) for row in csv.DictReader(file, delimiter="|")]


def is_recognised(constraint: Planted) -> bool:
    """Return whether the constraint is found in its message."""
    found = standing_instructions(constraint.message)
    return any(constraint.instruction in each or each in constraint.instruction for each in found)


def recognition() -> None:
    """Print how many of the constraints are recognised, by kind, and precision and recall on the labelled messages, by source."""
    wordings = planted()
    kinds = Counter(each.kind for each in wordings if is_recognised(each))
    known = sum(count >= 7 for count in kinds.values())
    print(f"planted: {sum(kinds.values())} of {len(wordings)} wordings, {known} kinds with at least 7 of 8")
    if not CANONICAL.exists():
        print(ABSENT)
        return
    counts: dict[str, Counter[str]] = {}
    for source, is_standing, found in _labelled():
        outcome = ("hit" if is_standing else "false") if found else ("missed" if is_standing else "quiet")
        for name in (source, "left out" if source in LEFT_OUT else "known"):
            counts.setdefault(name, Counter())[outcome] += 1
    print("| source | messages | standing | hits | false alarms | precision | recall |")
    print("|---|---|---|---|---|---|---|")
    for name, outcomes in sorted(counts.items()):
        hits, false, missed = outcomes["hit"], outcomes["false"], outcomes["missed"]
        precision, recall = _share(hits, hits + false), _share(hits, hits + missed)
        print(
            f"| {name} | {outcomes.total():,} | {hits + missed} | {hits} | {false} | {precision} | {recall} |"
        )


def _labelled() -> Iterator[tuple[str, bool, bool]]:
    """Yield, for each labelled message, its source, whether it holds a standing instruction, and whether one is found."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        labels = {(row["session"], int(row["message"])): row for row in csv.DictReader(file)}
    for session in sessions():
        for index, recorded in enumerate(session.messages):
            row = labels.get((session.name, index))
            if row is None:
                continue
            message = recorded.message
            if sha256(message.text.encode()).hexdigest() != row["sha256"]:
                raise ValueError(f"message {index} of {session.name} is not the one that was labelled")
            found = bool(standing_instructions(own_words(message)))
            yield session.name.partition("/")[0], row["standing"] == "yes", found


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


SECTIONS = {"recognition": recognition}


def main(names: list[str]) -> int:
    """Print the sections asked for, all by default."""
    for name in names or SECTIONS:
        print(f"\n## {name}\n")
        SECTIONS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
