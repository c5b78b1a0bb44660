"""Pins in a session: recognising instructions as they are said, pinning by hand, and keeping every pin in the view.

A pin stays where it was said for as long as the view shows that message. A compaction that removes the message writes the
block of pins behind its summary (`with_block`). Whatever else leaves a pin out of the view, such as pinning by hand or a provider's own
compaction, is made good at the end of the view (`with_missing_pins`), where no cached prefix breaks.

While nothing is pinned, what the user says is searched only before it may leave the view: when something is compacted, or when the
client or the user goes back (`with_instructions`). A turn that keeps reads none of it.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from lowwater.core.entries import Compacted
from lowwater.core.messages import Message, Text
from lowwater.core.reconcile import Reconciled, continues_compacted
from lowwater.core.summary.activity import own_words
from lowwater.core.summary.frame import is_framed
from lowwater.core.summary.instructions import replaces_earlier, standing_instructions
from lowwater.core.summary.pins import (
    FILES_HEADING,
    ChosenPins,
    Pin,
    choose_pins,
    entries_in_view,
    entries_shown,
    is_block_text,
    pin_block,
    text_of_entry,
)
from lowwater.core.summary.text import flat, key_words
from lowwater.core.summary.typed_text import MOST_CHARACTERS, is_for_subagent, typed_words
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import Edited, Item, Original, Summary, is_own_block, is_pin_block, view_items
from lowwater.errors import BadInput

PINS = "pins"
"""The mechanism that appends pins which the view does not show; stored."""
_MOST_TOKENS = 1_500
_SHARE = 20
"""The block may have a twentieth of the context length, and so many tokens at most."""
_FILES_SHARE = 10
"""Pinned files may have a tenth of the context length together."""
_LONGEST = 2_000
"""Characters of a pin."""
_MOST_PROPOSED = 20
"""How many proposals of the model may wait for the user's confirmation."""
_MOST_RECOGNISED = 500
"""How many recognised instructions are kept, the newest: several times as many as the block has room for, and all are stored with each turn."""
_MOST_READ = 500_000
"""Characters of user messages that one turn searches, the newest first: a whole session that arrives at once is read in a second or two."""
_ABOUT_THE_SAME = 0.5
"""The share of an instruction's key words that a later one repeats if it replaces it; one that only touches on it leaves it in force."""
_HANDLE = re.compile(r"\s*lw:(\d{1,15})\s*", re.IGNORECASE)


# What the user says


def with_instructions(state: State) -> State:
    """Return the state with the instructions in user messages that were not searched before.

    Of a session whose pins are not known, because it is older than they are or was imported without them, what the view shows is searched.
    """
    newest = len(state.ledger.messages)
    if newest <= state.instructions_read:
        return state
    unread: list[Item] = []
    before: Message | None = None
    left = _MOST_READ
    for item in reversed(state.ledger.view.items):
        if not isinstance(item, Summary) and item.number <= state.instructions_read:
            before = _said_as(item)
            break
        left -= _typed_size(item)
        if left < 0:
            before = _said_as(item)
            break
        unread.append(item)
    said: list[Pin] = []
    nobody = is_for_subagent(state.ledger.view.system)
    for item in reversed(unread):
        original = _said_as(item)
        if not isinstance(item, Summary) and original.role == "user":
            if not state.instructions_read:
                said += _carried_over(original, item.number, before)
            if not nobody:
                said += _said_in(original, item.number, before)
        before = original
    return replace(state, pins=_newest((*state.pins, *said)), instructions_read=newest)


def _typed_size(item: Item) -> int:
    """Return the characters of a user's message that are read; 0 for other items."""
    if isinstance(item, Summary) or item.message.role != "user":
        return 0
    size = sum(len(part.text) for part in item.message.parts if isinstance(part, Text))
    return min(size, MOST_CHARACTERS)


def _newest(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
    """Return the pins without the oldest recognised ones, if there are too many of these."""
    spare = sum(pin.source == "recognised" for pin in pins) - _MOST_RECOGNISED
    kept: list[Pin] = []
    for pin in pins:
        if spare > 0 and pin.source == "recognised":
            spare -= 1
        else:
            kept.append(pin)
    return tuple(kept)


def _said_as(item: Item) -> Message:
    return item.original if isinstance(item, Edited) else item.message


def _said_in(message: Message, number: int, before: Message | None) -> list[Pin]:
    """Return the instructions in a user's message, but not those in summaries and blocks that a client sent back in it."""
    parts = [part for part in message.parts if not (isinstance(part, Text) and _is_ours(part.text))]
    spoken = message if len(parts) == len(message.parts) else message.with_parts(parts)
    found = _recognised(typed_words(spoken, before=before))
    return [Pin(text=text, number=number, source="recognised") for text in found]


@lru_cache(maxsize=1_000)
def _recognised(words: str) -> tuple[str, ...]:
    """Return the standing instructions in what a user typed; remembered, because a status searches what the next compaction searches again."""
    return standing_instructions(words)


def _carried_over(message: Message, number: int, before: Message | None) -> list[Pin]:
    """Return the pins in the blocks with which a client continues a list that was compacted elsewhere.

    A block counts behind a summary only, where compactions write it: a file may quote one.
    """
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    follows = before is not None and any(
        is_framed(part.text) for part in before.parts if isinstance(part, Text)
    )
    blocks: list[str] = []
    for text in texts:
        if is_block_text(text) and follows and not text.startswith(FILES_HEADING):
            blocks.append(text)
        follows = is_framed(text) or (follows and is_block_text(text))
    entries = entries_shown(blocks)
    return [Pin(text=text_of_entry(entry), number=number, source="recognised") for entry in entries]


def _is_ours(text: str) -> bool:
    return is_framed(text) or is_block_text(text)


def with_surviving_pins(before: State, after: State, reconciled: Reconciled) -> State:
    """Return the state after a client changed its list, with the pins of the messages that the client's own compaction dropped.

    What the user took back or wrote anew holds no longer; a compaction takes nothing back.
    """
    if not before.pins or reconciled.rewind_to is None or not continues_compacted(reconciled):
        return after
    gone = {pin.number for pin in before.pins} & _present(before) - _present(after)
    survivors = (replace(pin, survives=True) if pin.number in gone else pin for pin in after.pins)
    return replace(after, pins=tuple(survivors)) if gone else after


# Which pins there are


def known_pins(state: State) -> tuple[Pin, ...]:
    """Return each pin of the conversation as it is now once, in the order in which they were first said, with those marked that a later one replaced.

    The pins of messages that were taken back or discarded are left out.
    """
    if not state.pins:
        return ()
    present = _present(state)
    said = [
        pin
        for pin in state.pins
        if pin.source != "recognised" or pin.survives or not pin.number or pin.number in present
    ]
    for at, pin in enumerate(said):
        if pin.status == "in_force" and replaces_earlier(pin.text):
            said[:at] = [_replaced_by(earlier, pin) for earlier in said[:at]]
    known: dict[tuple[str, str], Pin] = {}
    for pin in said:
        known.setdefault((pin.status, _same_text(pin.text)), pin)
    in_force = {text for status, text in known if status == "in_force"}
    return tuple(pin for (_, text), pin in known.items() if pin.status == "in_force" or text not in in_force)


def pins_upto(pins: Sequence[Pin], count: int) -> tuple[Pin, ...]:
    """Return the pins of a session that begins with the first `count` messages of the one that has these; pinned by hand, they all hold."""
    return tuple(
        pin if pin.number <= count else replace(pin, number=0)
        for pin in pins
        if pin.number <= count or pin.source == "user"
    )


def _present(state: State) -> set[int]:
    """Return the numbers of the pins' messages that the view shows or summarises."""
    wanted = {pin.number for pin in state.pins if pin.number}
    present: set[int] = set()
    for item in state.ledger.view.items:
        if isinstance(item, Summary):
            present.update(
                number for number in wanted for span in item.sources if span.first <= number <= span.last
            )
        elif item.number in wanted:
            present.add(item.number)
    return present


def _replaced_by(pin: Pin, new: Pin) -> Pin:
    """Return an earlier pin as replaced, if it is about the same thing as the new one, which says that something no longer holds."""
    if pin.status != "in_force" or _same_text(pin.text) == _same_text(new.text):
        return pin
    words = set(key_words(pin.text))
    shared = words & set(key_words(new.text))
    is_about_it = len(shared) >= 2 and len(shared) >= _ABOUT_THE_SAME * len(words)
    return replace(pin, status="replaced") if is_about_it else pin


def _same_text(text: str) -> str:
    return flat(text).casefold()


# By hand


def pin(state: State, wanted: str) -> State:
    """Return the state with a text, or the message that a handle names, in force; a proposal of the same text is confirmed."""
    # What was said before is read first: it is older, and a message that is pinned by hand must not be pinned again.
    state = with_instructions(state)
    from lowwater.core.summary.sanitize import whole_characters  # noqa: PLC0415 - for those who pin by hand

    wanted = whole_characters(wanted)
    number = _number_in(wanted)
    if number is None:
        first = next((each.number for each in state.pins if _same_text(each.text) == _same_text(wanted)), 0)
        return _pinned(state, [Pin(text=wanted.strip(), number=first)])
    if not 1 <= number <= len(state.ledger.messages):
        raise BadInput(f"there is no message lw:{number}: the session has {len(state.ledger.messages):,}")
    held = [each for each in state.pins if each.number == number]
    if held:
        return _pinned(state, [replace(each, source="user", status="in_force") for each in held])
    message = state.ledger.message(number)
    text = own_words(message) if message.role == "user" else message.text
    return _pinned(state, [Pin(text=text.strip(), number=number)])


def propose(state: State, text: str) -> State:
    """Return the state with a proposal of the model, which is not in force before the user pins it."""
    state = with_instructions(state)
    from lowwater.core.summary.sanitize import whole_characters  # noqa: PLC0415 - loaded with the first proposal

    text = whole_characters(text)
    if any(_same_text(each.text) == _same_text(text) for each in known_pins(state)):
        return state
    waiting = sum(each.status == "proposed" for each in state.pins)
    if waiting >= _MOST_PROPOSED:
        raise BadInput(f"{waiting} proposals wait for the user's confirmation: propose no more")
    return _with_pins(state, [Pin(text=text.strip(), source="model", status="proposed")])


def _pinned(state: State, new: Sequence[Pin]) -> State:
    """Return the state with these pins behind all others, in place of those with the same text."""
    texts = {_same_text(each.text) for each in new}
    others = tuple(each for each in state.pins if _same_text(each.text) not in texts)
    return _with_pins(replace(state, pins=others), new)


def _with_pins(state: State, new: Sequence[Pin]) -> State:
    for each in new:
        if not each.text:
            raise BadInput("there is no text to pin")
        if len(each.text) > _LONGEST:
            raise BadInput(
                f"{len(each.text):,} characters are too long for a pin: say in at most {_LONGEST:,} what holds"
            )
    return replace(state, pins=(*state.pins, *new))


def unpin(state: State, wanted: str) -> State:
    """Return the state without the pins that a handle names, or without the one with this text or beginning with it."""
    state = with_instructions(state)
    known, number, text = known_pins(state), _number_in(wanted), _same_text(wanted)
    if number is not None:
        gone = {_same_text(each.text) for each in known if each.number == number}
    else:
        texts = {_same_text(each.text) for each in known}
        gone = texts & {text} or {each for each in texts if text and each.startswith(text)}
        if len(gone) > 1:
            raise BadInput(f"{len(gone)} pins begin like that: give more of the text, or a handle")
    if not gone:
        raise BadInput(f"nothing is pinned as {wanted[:60]!r}: pins() lists what is")
    return replace(state, pins=tuple(each for each in state.pins if _same_text(each.text) not in gone))


def _number_in(wanted: str) -> int | None:
    """Return the number in a handle; None for any other text."""
    found = _HANDLE.fullmatch(wanted)
    return int(found[1]) if found else None


# What the view shows


def pins_left_out(state: State, setup: Setup) -> tuple[Pin, ...]:
    """Return the pins that are in force and for which the block has no room."""
    return _for_block(known_pins(state), state.ledger.view.items, state, setup).left_out


def with_block(state: State, items: Sequence[Item], setup: Setup, *, first: int) -> list[Item]:
    """Return the items of a compaction's view with one block of pins behind the last summary; `first` is the first item that it changed.

    A block in what is left unchanged before the summaries stays. Behind a provider's own block there is none, because what follows that is
    bound to it: it is made good at the end of the view.
    """
    while first and isinstance(items[first - 1], Summary):
        first -= 1
    kept = [item for at, item in enumerate(items) if at < first or not is_pin_block(item)]
    place = next((at for at in range(len(kept), first, -1) if isinstance(kept[at - 1], Summary)), 0)
    if not place or is_own_block(kept[place - 1]):
        return list(items)
    blocks = [_missing(state, kept, setup, says_left_out=True), _pinned_files(state, kept, setup)]
    placed = [*kept[:place], *(block for block in blocks if block is not None), *kept[place:]]
    return [*placed[:first], *(_in_turn(placed, at) for at in range(first, len(placed)))]


def _in_turn(items: Sequence[Item], at: int) -> Item:
    """Return the item at `at`; a summary in the assistant's role gets the user's if it would stand beside another assistant message."""
    item = items[at]
    if not isinstance(item, Summary) or is_own_block(item) or item.message.role != "assistant":
        return item
    beside = (*items[max(0, at - 1) : at], *items[at + 1 : at + 2])
    if all(each.message.role != "assistant" for each in beside):
        return item
    return replace(item, message=replace(item.message, role="user"))


def _pinned_files(state: State, items: Sequence[Item], setup: Setup) -> Summary | None:
    """Return the block of the files that the settings pin and these items no longer show."""
    if not setup.preset.pinned:
        return None
    from lowwater.core.summary.pinned_files import file_block  # noqa: PLC0415  # few settings name files

    return file_block(
        state.ledger,
        items,
        setup.preset.pinned,
        tokens=state.window // _FILES_SHARE,
        size=setup.size,
        count=setup.tokenizer.count,
        redact=setup.settings.privacy.redact,
    )


def with_missing_pins(state: State, setup: Setup, at: float) -> State:
    """Return the state with a block at the end of its view for pins that it does not show, or still shows though they were withdrawn.

    Behind an answer there is no place for it: it waits for what comes next.
    """
    items = state.ledger.view.items
    if not items or items[-1].message.role == "assistant":
        return state
    if not (state.pins or any(map(is_pin_block, items))):
        return state
    if not (setup.settings.compression.enabled or any(pin.source == "user" for pin in state.pins)):
        return state
    block = _missing(state, items, setup)
    if block is None:
        return state
    # Without a price: it is appended, so no prefix breaks, and the model has to see what the user laid down.
    entry = Compacted(at=at, mechanisms=(PINS,), items=view_items([*items, block]))
    return replace(state, ledger=state.ledger.append(entry))


def _missing(
    state: State, items: Sequence[Item], setup: Setup, *, says_left_out: bool = False
) -> Summary | None:
    """Return a block with the pins that these items do not show, and with what they still show though it was withdrawn."""
    known, shown = known_pins(state), entries_in_view(items)
    chosen = _for_block(known, items, state, setup)
    held = {pin.entry for pin in known if pin.status == "in_force"}
    missing = ChosenPins(
        pins=tuple(pin for pin in chosen.pins if pin.entry not in shown),
        left_out=chosen.left_out if says_left_out else (),
    )
    return pin_block(missing, size=setup.size, withdrawn=[entry for entry in shown if entry not in held])


def _for_block(known: Iterable[Pin], items: Sequence[Item], state: State, setup: Setup) -> ChosenPins:
    """Return the pins in force that these items do not show where they were said, as many as there is room for."""
    in_force = [pin for pin in known if pin.status == "in_force"]
    wanted = {pin.number for pin in in_force if pin.number}
    shown = {item.number: item for item in items if not isinstance(item, Summary) and item.number in wanted}
    needed = [pin for pin in in_force if not _shows(shown.get(pin.number), pin)]
    tokens = min(_MOST_TOKENS, state.window // _SHARE)
    return choose_pins(needed, tokens=tokens, count=setup.tokenizer.count)


def _shows(item: Original | Edited | None, pin: Pin) -> bool:
    if isinstance(item, Edited):
        return flat(pin.text) in flat(item.message.text)
    return item is not None
