"""Pins: standing instructions as they are kept, and the block in which those stand that the view no longer shows where they were said.

The block is an item of the view of its own, behind the summary: not inside its frame, which says that a summary is background
and no instruction. A pin is one entry in it, word for word. What is withdrawn later is said to be withdrawn in a block of its
own further down, so that nothing in front of it changes; the next compaction writes one block of all.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from lowwater.core.messages import Message, Text
from lowwater.core.stored_form import stored_as
from lowwater.core.view import PIN_BLOCK_DEPTH, Item, Summary, is_file_block, is_pin_block

PinSource = Literal["user", "recognised", "model"]
PinStatus = Literal["in_force", "proposed", "replaced"]

_HEADING = "Still in force, in the user's own words (where two contradict each other, the later one holds):"
_WITHDRAWN = "No longer in force, because the user withdrew it:"
FILES_HEADING = "Files that stay in view, as a tool returned them last; this is their content, not a message of the user's:"
"""How the block of pinned files begins (`pinned_files.py`)."""
_ENTRY = "\n- "
_PARAGRAPH = "\n\n"
_INDENT = "\n  "
"""How the lines of an entry after its first begin, so that no line of a pin can pass for another entry or a heading."""
_MORE = "No room here for {count} more, which hold all the same: {handles}"
_ELSEWHERE = "without a handle"
_MOST_NAMED = 5
"""How many pins are named that did not fit; the others are counted."""
_HANDLE = re.compile(r" \(lw:\d+\)\Z")


class Pin(Struct, frozen=True, kw_only=True, rename=stored_as("pin"), forbid_unknown_fields=True):
    """A standing instruction, word for word, and where it comes from."""

    text: str
    number: int = 0
    """The message in which it was said; 0 if it was pinned in words of its own."""
    source: PinSource = "user"
    """Who made it a pin: the user by hand, the recogniser, or the model, which can only propose."""
    status: PinStatus = "in_force"
    """Whether it stands in every view, waits for the user's confirmation, or was replaced by a later one."""
    survives: bool = False
    """Whether it holds without its message, which the client's own compaction dropped from the conversation."""

    @property
    def handle(self) -> str:
        """The handle of the message in which it was said, such as `lw:12`; empty if there is none."""
        return f"lw:{self.number}" if self.number else ""

    @property
    def entry(self) -> str:
        """The instruction as it stands in the block."""
        text = self.text.replace("\n", _INDENT)
        return f"{text} ({self.handle})" if self.number else text


class ChosenPins(Struct, frozen=True, kw_only=True):
    """The pins for which there is room, in the order in which they were said, and the others."""

    pins: tuple[Pin, ...]
    left_out: tuple[Pin, ...] = ()


def choose_pins(pins: Sequence[Pin], *, tokens: int, count: Callable[[str], int]) -> ChosenPins:
    """Return the pins that fit into so many tokens: those that were pinned by hand first, then the newest."""
    ranked = sorted(range(len(pins)), key=lambda at: (pins[at].source != "user", -at))
    kept: set[int] = set()
    for at in ranked:
        size = count(_ENTRY + pins[at].entry)
        if size <= tokens:
            kept.add(at)
            tokens -= size
    return ChosenPins(
        pins=tuple(pin for at, pin in enumerate(pins) if at in kept),
        left_out=tuple(pin for at, pin in enumerate(pins) if at not in kept),
    )


def pin_block(
    chosen: ChosenPins, *, size: Callable[[Message], int], withdrawn: Sequence[str] = ()
) -> Summary | None:
    """Return the item that says what is in force, and what no longer is; None if there is nothing to say."""
    parts: list[str] = []
    if chosen.pins:
        parts.append(_HEADING + "".join(_ENTRY + pin.entry for pin in chosen.pins))
    if chosen.left_out:
        handles = ", ".join(dict.fromkeys(pin.handle or _ELSEWHERE for pin in chosen.left_out))
        parts.append(_MORE.format(count=len(chosen.left_out), handles=handles))
    if withdrawn:
        parts.append(_WITHDRAWN + "".join(_ENTRY + entry for entry in withdrawn))
    if not parts:
        return None
    message = Message(role="user", parts=(Text(text=_PARAGRAPH.join(parts)),))
    return Summary(message=message, tokens=size(message), sources=(), depth=PIN_BLOCK_DEPTH)


def explain_left_out(pins: Sequence[Pin]) -> str:
    """Return a sentence that names the pins for which there was no room."""
    first = "; ".join(f"{pin.text} ({pin.handle})" if pin.handle else pin.text for pin in pins[:_MOST_NAMED])
    more = f"; and {len(pins) - _MOST_NAMED:,} more" if len(pins) > _MOST_NAMED else ""
    return f"The block of standing instructions has no room for {len(pins):,}, of which it has only the handles: {first}{more}"


def is_block_text(text: str) -> bool:
    """Return whether a text is such a block or that of pinned files, which a client may send back."""
    return text.startswith((_HEADING, _WITHDRAWN, _MORE.partition("{")[0], FILES_HEADING))


def entries_shown(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the entries that blocks, in the order of the view, say are in force."""
    shown: dict[str, None] = {}
    for text in texts:
        for paragraph in text.split(_PARAGRAPH):
            heading, *entries = paragraph.split(_ENTRY)
            if heading == _HEADING:
                shown |= dict.fromkeys(entries)
            elif heading == _WITHDRAWN:
                for entry in entries:
                    shown.pop(entry, None)
    return tuple(shown)


def entries_in_view(items: Iterable[Item]) -> tuple[str, ...]:
    """Return the entries that the blocks of a view say are in force."""
    return entries_shown(
        item.message.text for item in items if is_pin_block(item) and not is_file_block(item)
    )


def text_of_entry(entry: str) -> str:
    """Return the instruction in an entry, without its handle."""
    return _HANDLE.sub("", entry).replace(_INDENT, "\n")
