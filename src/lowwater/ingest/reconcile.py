"""Matching the list a client keeps against the ledger: what is new, and where the client went another way."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lowwater.ingest.likeness import says_the_same
from lowwater.values.entries import Appended, Entry, Rewound
from lowwater.values.ledger import Ledger
from lowwater.values.message import Message
from lowwater.values.view import Summary


class Reconciled(Struct, frozen=True, kw_only=True):
    """What a client's list means for the ledger."""

    new: tuple[Message, ...]
    """Messages to append."""
    rewind_to: int | None = None
    """The ledger position to go back to first, if the client edited or dropped messages the ledger holds."""
    known: int = 0
    """How many of the client's messages the ledger held already."""


def reconcile(ledger: Ledger, messages: Sequence[Message]) -> Reconciled:
    """Find what is new in `messages`, which are all that the client has.

    A client keeps the whole history, or goes on from the view it was given; either is compared by content. Where it
    differs from the history, the ledger goes back to before the first difference.
    """
    branch = branch_of(ledger)
    known = _alike((ledger.message(number) for number in branch), messages)
    if known == len(branch):
        return Reconciled(new=tuple(messages[known:]), known=known)
    view = ledger.view.messages
    if _alike(view, messages) == len(view):
        return Reconciled(new=tuple(messages[len(view) :]), known=len(view))
    position = _position_before(ledger, branch[known])
    shown = ledger.view_at(position).shown_numbers()
    if shown != set(branch[: len(shown)]):
        # Rewinds of rewinds can show more there than the client ever had: begin anew.
        position, shown = 0, set()
    return Reconciled(new=tuple(messages[len(shown) :]), known=len(shown), rewind_to=position)


def branch_of(ledger: Ledger) -> list[int]:
    """Return the numbers of the messages that are in effect, in order: all but those a rewind discarded."""
    numbers: list[int] = []
    for item in ledger.view.items:
        if isinstance(item, Summary):
            for span in item.sources:
                numbers.extend(range(span.first, span.last + 1))
        else:
            numbers.append(item.number)
    return sorted(set(numbers))


def entries_for(reconciled: Reconciled, tokens: Sequence[int], at: float) -> list[Entry]:
    """Return the entries that bring the ledger up to the client's list; `tokens` are the sizes of the new messages.

    Each message is an entry of its own: a client may later go another way from any of them.
    """
    entries: list[Entry] = []
    if reconciled.rewind_to is not None:
        entries.append(Rewound(at=at, to=reconciled.rewind_to, discard_later=True))
    entries += [
        Appended(at=at, messages=(message,), tokens=(size,))
        for message, size in zip(reconciled.new, tokens, strict=True)
    ]
    return entries


def _alike(held: Iterable[Message], sent: Iterable[Message]) -> int:
    """Return how many messages the two lists have in common from the start."""
    count = 0
    for ours, theirs in zip(held, sent, strict=False):
        if not says_the_same(ours, theirs):
            break
        count += 1
    return count


def _position_before(ledger: Ledger, number: int) -> int:
    """Return the ledger position at which the message `number` had not come yet."""
    count = 0
    for position, entry in enumerate(ledger.entries):
        if isinstance(entry, Appended):
            count += len(entry.messages)
            if count >= number:
                return position
    return len(ledger.entries)
