"""Where a use is when an answer needs it: in the view, one recall away, or gone; and how many are where."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, TypeVar

from msgspec import Struct

from lowwater.core.references import Kind
from lowwater.replay.references.uses import Use

T = TypeVar("T")

Place = Literal["in_view", "one_recall", "gone"]
Because = Literal[
    "shown",
    "handle",
    "ranges",
    "summary",
    "search",
    "not in the ledger",
    "no words",
    "not found",
    "not in what was read",
]

PLACES: Mapping[Because, Place] = {
    "shown": "in_view",
    "handle": "one_recall",
    "ranges": "one_recall",
    "summary": "one_recall",
    "search": "one_recall",
    "not in the ledger": "gone",
    "no words": "gone",
    "not found": "gone",
    "not in what was read": "gone",
}
"""What each finding means.

- `handle`, `ranges`: the handle of its message stands in the view, and one answer has it, or several are needed;
- `summary`: the handle of several messages, its own among them, stands there; `search`: one finds its message;
- `not in the ledger`: the original was not kept; `no words`: nothing to ask by is visible; `not found`: no handle is
  visible and no search finds its message; `not in what was read`: its message was opened, but not where it stands.
"""


class Outcome(Struct, frozen=True, kw_only=True):
    """Where one use is."""

    use: Use
    because: Because
    """How it is reached, or why it is not."""
    answers: int = 0
    """How many answers of recall it took; none for what is in view or gone."""
    tokens: int = 0
    """What getting it back writes: these answers; for what is gone the whole result, as its tool would give it again."""

    @property
    def place(self) -> Place:
        """Whether it is in the view, one recall away or gone."""
        return PLACES[self.because]


class Recall(Struct, frozen=True, kw_only=True):
    """How many uses are in the view, one recall away and gone."""

    in_view: int = 0
    one_recall: int = 0
    gone: int = 0
    by_kind: dict[Kind, dict[Place, int]] = {}
    ways: dict[Because, int] = {}
    """How those one recall away are reached."""
    causes: dict[Because, int] = {}
    """Why those that are gone are not."""
    tokens: int = 0
    """What getting back all that left the view writes."""

    @property
    def uses(self) -> int:
        """All of them."""
        return self.in_view + self.one_recall + self.gone

    @property
    def share_in_view(self) -> float:
        """Of all uses, those in the view; 1 if there are none."""
        return self.in_view / self.uses if self.uses else 1.0

    @property
    def share_one_recall(self) -> float:
        """Of the uses that left the view, those one recall away; 1 if none left it."""
        left = self.one_recall + self.gone
        return self.one_recall / left if left else 1.0

    def plus(self, other: "Recall") -> "Recall":
        """Return both together."""
        kinds = dict.fromkeys([*self.by_kind, *other.by_kind])
        return Recall(
            in_view=self.in_view + other.in_view,
            one_recall=self.one_recall + other.one_recall,
            gone=self.gone + other.gone,
            by_kind={kind: _sum(self.by_kind.get(kind, {}), other.by_kind.get(kind, {})) for kind in kinds},
            ways=_sum(self.ways, other.ways),
            causes=_sum(self.causes, other.causes),
            tokens=self.tokens + other.tokens,
        )


def recall_of(outcomes: Iterable[Outcome]) -> Recall:
    """Return how many uses are where."""
    places: Counter[Place] = Counter()
    findings: Counter[Because] = Counter()
    by_kind: dict[Kind, Counter[Place]] = {}
    tokens = 0
    for outcome in outcomes:
        places[outcome.place] += 1
        findings[outcome.because] += 1
        by_kind.setdefault(outcome.use.kind, Counter())[outcome.place] += 1
        tokens += outcome.tokens
    return Recall(
        in_view=places["in_view"],
        one_recall=places["one_recall"],
        gone=places["gone"],
        by_kind={kind: dict(counts) for kind, counts in by_kind.items()},
        ways={found: count for found, count in findings.items() if PLACES[found] == "one_recall"},
        causes={found: count for found, count in findings.items() if PLACES[found] == "gone"},
        tokens=tokens,
    )


def _sum(ours: Mapping[T, int], theirs: Mapping[T, int]) -> dict[T, int]:
    return dict(Counter(ours) + Counter(theirs))
