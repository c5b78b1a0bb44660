"""Ledgers compacted by hand, in memory and elsewhere, and how to walk their summaries down."""

from msgspec.structs import replace

from lowwater.core.entries import Compacted, Entry, KeptRange, Numbers, SummarizedSpan, ViewItem
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.recall.expand import expand
from lowwater.core.recall.recalled import Expansion, ExpansionLine
from lowwater.core.sequences import AppendOnlyList, LazySequence
from lowwater.core.view import Summary
from lowwater.testing.views import Script


def talk(turns: int) -> Ledger:
    script = Script()
    for turn in range(1, turns + 1):
        script.user(f"Ask {turn}.").says(f"Answer {turn}.")
    return script.ledger()


def summed(text: str, *sources: tuple[int, int], depth: int = 1) -> SummarizedSpan:
    numbers = tuple(Numbers(first=first, last=last) for first, last in sources)
    return SummarizedSpan(text=text, role="user", sources=numbers, tokens=7, depth=depth)


def kept(first: int, last: int) -> KeptRange:
    return KeptRange(numbers=Numbers(first=first, last=last))


def compact(ledger: Ledger, *stands: ViewItem) -> Ledger:
    return ledger.append(Compacted(at=1.0, mechanisms=("summarize",), items=stands))


def leaves(ledger: Ledger, child: ExpansionLine) -> list[int]:
    if child.kind == "message":
        (only,) = child.sources
        return [only.first]
    expansion = expand(ledger, child.handle)
    check_level(expansion, child)
    return [number for below in expansion.children for number in leaves(ledger, below)]


def check_level(expansion: Expansion, child: ExpansionLine) -> None:
    firsts = [below.sources[0].first for below in expansion.children]
    assert firsts == sorted(set(firsts))
    assert all(below.sources != child.sources or child.messages == 1 for below in expansion.children)
    assert sum(below.messages for below in expansion.children) == child.messages
    assert expansion.tokens == sum(below.tokens for below in expansion.children)


def in_view(summary: Summary) -> ExpansionLine:
    handle = ",".join(f"{span.first}-{span.last}" for span in summary.sources)
    messages = sum(span.last - span.first + 1 for span in summary.sources)
    return ExpansionLine(
        kind="summary",
        handle=f"lw:{handle}",
        who="summary",
        tokens=summary.tokens,
        messages=messages,
        first_line="",
        sources=summary.sources,
    )


class Elsewhere:
    """A ledger whose entries and messages lie elsewhere, and which of them were fetched."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.entries: list[int] = []
        self.messages: list[int] = []
        entries: LazySequence[Entry] = LazySequence(len(ledger.entries), self._fetch_entries)
        messages: LazySequence[Numbered] = LazySequence(len(ledger.messages), self._fetch_messages)
        self.reopened = replace(
            ledger, entries=AppendOnlyList(before=entries), messages=AppendOnlyList(before=messages)
        )

    def _fetch_entries(self, first: int, end: int) -> list[Entry]:
        self.entries += range(first, end)
        return self._ledger.entries[first:end]

    def _fetch_messages(self, first: int, end: int) -> list[Numbered]:
        self.messages += range(first, end)
        return self._ledger.messages[first:end]
