"""Matching the list a client keeps against the ledger: what is new, and where the client went another way."""

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct

from lowwater.values.entries import Appended, Entry, Rewound
from lowwater.values.ledger import Ledger
from lowwater.values.message import Message
from lowwater.values.parts import Text, Thinking


class Reconciled(Struct, frozen=True, kw_only=True):
    """What a client's list means for the ledger."""

    new: tuple[Message, ...]
    """Messages to append."""
    rewind_to: int | None = None
    """The ledger position to go back to first, if the client edited or dropped messages the ledger holds."""
    known: int = 0
    """How many of the client's messages the ledger held already."""


def reconcile(ledger: Ledger, messages: Sequence[Message]) -> Reconciled:
    """Compare by content, thinking aside: clients write messages anew, move cache marks and drop fields."""
    branch = branch_of(ledger)
    known = 0
    for number, message in zip(branch, messages, strict=False):
        original = ledger.message(number)
        if original.digest != message.digest and loose_digest(original) != loose_digest(message):
            break
        known += 1
    if known == len(branch):
        return Reconciled(new=tuple(messages[known:]), known=known)
    position = _position_before(ledger, branch[known])
    known = len(ledger.view_at(position).shown_numbers())
    return Reconciled(new=tuple(messages[known:]), known=known, rewind_to=position)


def branch_of(ledger: Ledger) -> list[int]:
    """Return the numbers of the messages that are in effect, in order: all but those a rewind discarded."""
    return sorted(ledger.view.shown_numbers())


def loose_digest(message: Message) -> bytes:
    """Return a digest that thinking and blanks around text do not change: some clients drop the one and trim the other."""
    parts = [
        ("text", part.text.strip()) if isinstance(part, Text) else part.identity()
        for part in message.parts
        if not isinstance(part, Thinking) and not (isinstance(part, Text) and not part.text.strip())
    ]
    return blake2b(msgspec.json.encode([message.role, parts]), digest_size=16).digest()


def _position_before(ledger: Ledger, number: int) -> int:
    """Return the ledger position at which the message `number` had not come yet."""
    count = 0
    for position, entry in enumerate(ledger.entries):
        if isinstance(entry, Appended):
            count += len(entry.messages)
            if count >= number:
                return position
    return len(ledger.entries)


def entries_for(reconciled: Reconciled, tokens: Sequence[int], at: float) -> list[Entry]:
    """Return the entries that bring the ledger up to the client's list; `tokens` are the sizes of the new messages."""
    entries: list[Entry] = []
    if reconciled.rewind_to is not None:
        entries.append(Rewound(at=at, to=reconciled.rewind_to, discard_later=True))
    if reconciled.new:
        entries.append(Appended(at=at, messages=reconciled.new, tokens=tuple(tokens)))
    return entries
