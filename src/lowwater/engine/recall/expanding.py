"""What a handle leads to, one level down: a deep summary to the summaries it was made of, a summary to its messages."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.compact.summary import unframe
from lowwater.engine.recall.handles import handle_of, read_handle
from lowwater.engine.recall.lineage import find_summary, made_of
from lowwater.engine.recall.matching import first_line
from lowwater.engine.recall.neighbourhood import told
from lowwater.engine.recall.ranges import counted, without
from lowwater.values.entries import Numbers, Summarized
from lowwater.values.ledger import Ledger
from lowwater.values.recalled import Child, Expansion, Told

_AT_ONCE = 64
"""Messages that are read in one go."""


class OpenedHandle(Struct, frozen=True, kw_only=True):
    """The messages a handle names, and the summary of them, if it names one, with those it was made of."""

    numbers: tuple[Numbers, ...]
    summary: Summarized | None = None
    made_of: tuple[Summarized, ...] = ()

    @property
    def text(self) -> str:
        """What the summary says, without the words around it."""
        return unframe(self.summary.text) if self.summary else ""


def expand(ledger: Ledger, handle: str) -> Expansion:
    """Return what a handle leads to, or raise BadInput.

    A summary leads to the summaries it was made of and to those of its messages that none of these stands for; a range
    of messages leads to the messages; a message to itself.
    """
    opened = open_handle(ledger, handle)
    return Expansion(
        handle=handle_of(opened.numbers), text=opened.text, children=tuple(children_of(ledger, opened))
    )


def open_handle(ledger: Ledger, handle: str) -> OpenedHandle:
    """Return what a handle names, or raise BadInput; no message is read."""
    numbers = read_handle(handle, of=len(ledger.messages))
    standing = None if counted(numbers) == 1 else find_summary(ledger, numbers)
    if standing is None:
        return OpenedHandle(numbers=numbers)
    return OpenedHandle(
        numbers=numbers,
        summary=standing.summary,
        made_of=tuple(one.summary for one in made_of(ledger, standing)),
    )


def children_of(ledger: Ledger, opened: OpenedHandle) -> Iterator[Child]:
    """Yield what a handle leads to, ordered by the first message; messages are read as they are asked for."""
    covered = (span for summary in opened.made_of for span in summary.sources)
    pieces: list[Summarized | Numbers] = [*opened.made_of, *without(opened.numbers, covered)]
    for piece in sorted(pieces, key=_first):
        if isinstance(piece, Summarized):
            yield _summary(piece)
        else:
            yield from _messages(ledger, piece)


def read_messages(ledger: Ledger, numbers: Sequence[Numbers]) -> Iterator[Told]:
    """Yield the messages with these numbers, read a few at a time."""
    for span in numbers:
        for first in range(span.first, span.last + 1, _AT_ONCE):
            last = min(span.last, first + _AT_ONCE - 1)
            yield from told(ledger.messages, Numbers(first=first, last=last))


def _first(piece: Summarized | Numbers) -> int:
    return piece.first if isinstance(piece, Numbers) else piece.sources[0].first


def _messages(ledger: Ledger, numbers: Numbers) -> Iterator[Child]:
    for one in read_messages(ledger, (numbers,)):
        yield Child(
            kind="message",
            handle=one.handle,
            who=one.who,
            tokens=one.tokens,
            messages=1,
            first_line=first_line(one.text),
            sources=(Numbers(first=one.number, last=one.number),),
        )


def _summary(summary: Summarized) -> Child:
    return Child(
        kind="summary",
        handle=handle_of(summary.sources),
        who="summary",
        tokens=summary.tokens,
        messages=counted(summary.sources),
        first_line=first_line(unframe(summary.text)),
        sources=summary.sources,
    )
