"""What must be true of every view, checked on a ledger as it grows.

The checks are independent of the code that they check: they use no mechanism and no step of a turn.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from lowwater.core.entries import Compacted, Edit, PreambleChanged, Retracted, Rewound
from lowwater.core.ledger import Ledger
from lowwater.core.messages import AnyPart, Message, Text, Thinking, ToolResult
from lowwater.core.tools import classify
from lowwater.core.view import Edited, Item, Summary, View, is_pin_block

NATIVE = "native"
"""The provider's own compaction, whose block comes first: only with it may the protected start go."""
IN_OTHER_WORDS = frozenset({"native_as_text"})
"""Mechanisms that write the same content in another form, which may be longer."""
REPEAT = "repeat"
"""The newest user message is shown again after an undo, and nothing else changes."""
KEEP = "keep"
"""The view stays compacted as it was when a client's own compaction dropped the messages behind it."""
PINS = "pins"
"""Pins that the view did not show are appended to it, and nothing else changes."""
AT_THE_WALL = frozenset({"shorten", "summarize_all", "squeeze"})
"""Mechanisms that may change head and tail: of those only the users' words and the system prompt stay as they are."""
_LIKE_A_HARNESS = re.compile(
    r"\s*(?:[<\[]|# AGENTS\.md|Caveat: |Base directory for |This (?:session|is the Gemini)|Continue the conversation|"
    r"Your task is to create|Operation stopped|Called the |The user d|\w+(?::\S+)? hook )"
)


class Protected(Struct, frozen=True, kw_only=True):
    """What a compaction must not change."""

    first: int = 3
    """Items at the start of the view; the system prompt counts, even if it is not in the list."""
    last: int = 20
    never_prune: tuple[str, ...] = ("clarify", "memory", "skill", "todo")
    binds_thinking: bool = False
    """Thinking may be removed anywhere, because the model refuses it after a change of the prompt."""
    notes_in_system: bool = False
    """The first compaction may add a note to the system prompt."""


class Watch:
    """Checks a session after every turn and raises AssertionError at the first violation."""

    def __init__(self, protected: Protected | None = None) -> None:
        self._protected = protected or Protected()
        self._ledger = Ledger()
        self._sent: Sequence[Message] = ()
        self.compactions = 0

    def see(self, ledger: Ledger, sent: Sequence[Message]) -> None:
        """Check a session that is about to send these messages."""
        known = len(self._ledger.entries)
        new = ledger.entries[known:]
        _hold("the ledger only grows", ledger.entries[:known] == self._ledger.entries[:])
        for position, entry in enumerate(new, start=known):
            if isinstance(entry, Compacted):
                self.compactions += 1
                before, after = ledger.view_at(position), ledger.view_at(position + 1)
                check_compaction(before, after, entry.mechanisms, self._protected)
        if not any(isinstance(entry, Compacted | Rewound | Retracted | PreambleChanged) for entry in new):
            check_prefix(self._sent, sent)
        check_pairs(sent)
        if new:
            check_nothing_lost(ledger)
        check_newest_user(ledger)
        self._ledger, self._sent = ledger, sent


def check_pairs(messages: Sequence[Message]) -> None:
    """Check that every call is answered before any other message, and that every result answers such a call (invariant 1)."""
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        if message.role in {"assistant", "user"} and not message.results:
            _hold(f"calls before message {at} are answered", not waiting)
        for result in message.results:
            _hold(f"the result in message {at} has its call", result.call_id in waiting)
            waiting.discard(result.call_id)
        if message.calls:
            _hold(f"calls before message {at} are answered", not waiting)
            waiting = {call.id for call in message.calls}
    _hold("the newest calls are answered", not waiting)


def check_prefix(before: Sequence[Message], after: Sequence[Message]) -> None:
    """Check that a request extends the one before it (invariant 2)."""
    _hold("nothing sent is missing", len(after) >= len(before))
    for at, (old, new) in enumerate(zip(before, after, strict=False)):
        _hold(f"message {at} leaves as it left before", _same(old, new))


def check_compaction(before: View, after: View, mechanisms: Iterable[str], protected: Protected) -> None:
    """Check that a compaction shrinks the view and does not change head, tail and protected results (invariants 3 and 4).

    At the wall and at a ceiling, only the users' words and the newest answer with its calls are protected.
    """
    used = set(mechanisms)
    if used == {REPEAT}:
        _check_repeated(list(before.items), list(after.items))
        return
    if used == {KEEP}:
        _hold("it shows what was shown before", after.shown_numbers() == before.shown_numbers())
        return
    if used == {PINS}:
        _hold("what was shown is untouched", list(after.items)[:-1] == list(before.items))
        _hold("a block of pins is added", is_pin_block(after.items[-1]))
        return
    _hold("the view is strictly smaller", after.tokens < before.tokens or used <= IN_OTHER_WORDS)
    old, new = ([item for item in view.items if not is_pin_block(item)] for view in (before, after))
    first = max(0, protected.first - bool(before.system))
    summaries = [at for at, item in enumerate(old) if isinstance(item, Summary)]
    head = 0 if NATIVE in used else min([_aligned(old, min(first, len(old))), *summaries])
    if used & AT_THE_WALL:
        head = min(head, _answered(old))
    for at in range(head):
        noted = at == 0 and protected.notes_in_system and old[0].message.role in {"system", "developer"}
        at_door = "shorten" in used and not any(item.message.role == "assistant" for item in old[at:])
        said = bool(used & AT_THE_WALL) and _keeps_words(old[at].message, new[at].message)
        _hold(
            f"head item {at} is untouched",
            noted or at_door or said or _untouched(old[at], new[at], protected),
        )
    if not used & AT_THE_WALL:
        tail = min(protected.last, len(old) - head)
        for at in range(1, tail + 1):
            _hold(f"tail item −{at} is untouched", _untouched(old[-at], new[-at], protected))
    for item in new:
        if isinstance(item, Edited) and item.message.role == "user":
            _hold("the users' words are verbatim", _keeps_words(item.original, item.message))
    if not used & {"shorten", "squeeze"}:
        known = {item.number: item.edits for item in old if isinstance(item, Edited)}
        for item in new:
            if isinstance(item, Edited):
                edits = [edit for edit in item.edits if edit not in known.get(item.number, ())]
                whole = not any(_is_protected(item, edit, new, protected) for edit in edits)
                _hold("a result that is never pruned is whole", whole)
    _check_newest_group(old, new, protected, squeezed="squeeze" in used)


def _check_repeated(old: Sequence[Item], new: Sequence[Item]) -> None:
    at = next(
        (
            at
            for at, (one, other) in enumerate(zip(old, new, strict=False))
            if not _same(one.message, other.message)
        ),
        len(old),
    )
    _hold("one message is added", len(new) == len(old) + 1)
    _hold(
        "it is the user's, behind a summary",
        at and isinstance(new[at - 1], Summary) and _speaks(new[at].message),
    )
    pairs = zip(old[at:], new[at + 1 :], strict=True)
    _hold("what follows is untouched", all(_same(one.message, other.message) for one, other in pairs))


def _check_newest_group(
    old: Sequence[Item], new: Sequence[Item], protected: Protected, *, squeezed: bool
) -> None:
    """Check that the newest answer and its calls are kept even if the tail shrinks (docs/specification.md: C2).

    Its results may be shorter; where even that does not fit (`squeezed`), the arguments of its calls, too.
    """
    tail = old[len(old) - min(protected.last, len(old)) :]
    answers = [item for item in tail if item.message.role == "assistant" and not isinstance(item, Summary)]
    if not answers:
        return
    newest = next(_numbers(answers[-1]))
    kept = [item for item in new if not isinstance(item, Summary) and item.number == newest]
    _hold("the newest group is kept", kept)
    calls, before = kept[0].message.calls, answers[-1].message.calls
    named = [(call.id, call.name) for call in calls] == [(call.id, call.name) for call in before]
    _hold("the newest calls are kept", named and (squeezed or calls == before))


def check_nothing_lost(ledger: Ledger) -> None:
    """Check that every current message is in the view exactly once, itself or inside a summary (invariant 6).

    Only a user message may be there twice: in its place, and again after a summary.
    """
    items = list(ledger.view.items)
    shown = Counter(number for item in items for number in _numbers(item))
    repeated = {
        item.number
        for summary, item in pairwise(items)
        if isinstance(summary, Summary) and not isinstance(item, Summary) and _speaks(item.message)
    }
    twice = {number for number, count in shown.items() if count > 1}
    _hold("no message stands for itself twice", twice <= repeated and max(shown.values(), default=0) <= 2)
    if not any(isinstance(entry, Rewound | Retracted) for entry in ledger.entries):
        _hold("every message can be expanded to", len(shown) == len(ledger.messages))
    for item in ledger.view.items:
        if isinstance(item, Edited):
            _hold("an edited message knows its original", _same(item.original, ledger.message(item.number)))


def check_newest_user(ledger: Ledger) -> None:
    """Check that the newest user message is there word for word, directly after a summary of later messages (invariant 5).

    A message that a harness may have written in the user's role can be gone; then the newest one that it did not write counts.
    """
    items = [item for item in ledger.view.items if not is_pin_block(item)]
    numbers = sorted((number for item in items for number in _numbers(item)), reverse=True)
    there = {item.number for item in items if not isinstance(item, Summary)}
    speaking = [number for number in numbers if _speaks(ledger.message(number))]
    newest = next(
        (each for each in speaking if each in there or not _may_be_a_harness(ledger.message(each))), None
    )
    if newest is None:
        return
    mine = [item for item in items if not isinstance(item, Summary) and item.number == newest]
    _hold("the newest user message is there", mine)
    _hold("the newest user message is verbatim", _said(mine[-1].message) == _said(ledger.message(newest)))
    later = [
        at
        for at, item in enumerate(items)
        if isinstance(item, Summary) and max(_numbers(item), default=0) > newest
    ]
    if later:
        behind = items[later[-1] + 1 : later[-1] + 2]
        own = next(
            (at for at, each in enumerate(speaking) if not _may_be_a_harness(ledger.message(each))), None
        )
        # Only the engine can tell whether a harness wrote a message that looks like it: any of these is accepted here.
        spoken = set(speaking[: None if own is None else own + 1])
        stands = [item.number for item in behind if not isinstance(item, Summary)]
        _hold("the newest user message is right behind the summary", stands and spoken.issuperset(stands))


def _aligned(items: Sequence[Item], head: int) -> int:
    """Return the end of a head that splits no group: the results of its calls belong to it."""
    called = {call.id for item in items[:head] for call in item.message.calls}
    while head < len(items) and any(result.call_id in called for result in items[head].message.results):
        head += 1
    return head


def _answered(items: Sequence[Item]) -> int:
    """Return the index of the first item that is an answer or a tool result."""
    return next(
        (at for at, item in enumerate(items) if item.message.role == "assistant" or item.message.results),
        len(items),
    )


def _untouched(old: Item, new: Item, protected: Protected) -> bool:
    if _same(old.message, new.message):
        return True
    return protected.binds_thinking and _without_thinking(old.message) == _without_thinking(new.message)


def _without_thinking(message: Message) -> Message:
    return message.with_parts([part for part in message.parts if not isinstance(part, Thinking)])


def _same(old: Message, new: Message) -> bool:
    """Return whether two messages have equal content and equal bytes."""
    return old is new or (old == new and _bytes(old) == _bytes(new))


def _bytes(message: Message) -> bytes:
    return message.wire.raw if message.wire is not None and message.wire.exact else b""


def _is_protected(item: Edited, edit: Edit, items: Sequence[Item], protected: Protected) -> bool:
    """Return whether an edit changes a tool result that must not be pruned."""
    original = item.original.parts[edit.path[0]]
    if not isinstance(original, ToolResult):
        return False
    calls = (call for each in items for call in each.message.calls)
    tool = next((call.name for call in calls if call.id == original.call_id), "")
    return bool({tool, classify(tool)} & set(protected.never_prune))


def _numbers(item: Item) -> Iterator[int]:
    if not isinstance(item, Summary):
        yield item.number
        return
    for earlier, later in pairwise(item.sources):
        _hold("the sources of a summary do not overlap", earlier.last < later.first)
    for span in item.sources:
        yield from range(span.first, span.last + 1)


def _speaks(message: Message) -> bool:
    return message.role == "user" and any(
        not isinstance(part, Text) or part.text.strip() for part in _said(message)
    )


def _said(message: Message) -> list[AnyPart]:
    return [part for part in message.parts if not isinstance(part, ToolResult)]


def _keeps_words(old: Message, new: Message) -> bool:
    """Return whether all texts of a message are still there, in order; placeholders of images may be among them."""
    shown = iter([part.text for part in new.parts if isinstance(part, Text)])
    return old.role == new.role and all(part.text in shown for part in old.parts if isinstance(part, Text))


def _may_be_a_harness(message: Message) -> bool:
    """Return whether all texts begin like those that harnesses write, or have nothing to read: such a message may be removed."""
    said = _said(message)
    return all(
        isinstance(part, Text) and (not _is_readable(part.text) or _LIKE_A_HARNESS.match(part.text))
        for part in said
    )


def _is_readable(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)


def _hold(claim: str, holds: object) -> None:
    if not holds:
        raise AssertionError(f"broken: {claim}")
