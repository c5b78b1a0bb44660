"""The view: what the model is shown now, as items that each stand for numbered messages."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import AlteredMessage, Edit, KeptRange, Numbers, SummarizedSpan, ViewItem
from lowwater.core.messages import (
    AnyPart,
    Message,
    Opaque,
    ToolResult,
    block_in,
    message_text,
    with_unique_call_ids,
)
from lowwater.core.sequences import AppendOnlyList


class Original(Struct, frozen=True, kw_only=True, tag="original"):
    """A message as it was appended."""

    number: int
    message: Message
    tokens: int


class Edited(Struct, frozen=True, kw_only=True, tag="edited"):
    """A message of which some parts are replaced or dropped; `message` is `original` with `edits` applied."""

    number: int
    original: Message
    edits: tuple[Edit, ...]
    message: Message
    tokens: int


PIN_BLOCK_DEPTH = 0
"""The depth of the block of pins, which summarises nothing and so has no sources."""


FILE_BLOCK_DEPTH = -1
"""The depth of the block of pinned files, which has no sources either."""


class Summary(Struct, frozen=True, kw_only=True, tag="summary"):
    """A message shown in place of the messages in `sources`; or, at depth 0, the block of pins (`core/summary/pins.py`), and below it the files."""

    message: Message
    tokens: int
    sources: tuple[Numbers, ...]
    depth: int


Item = Original | Edited | Summary


class View(Struct, frozen=True, kw_only=True):
    """What a ledger amounts to now: what is sent, and how large it is in the session's vocabulary."""

    items: AppendOnlyList[Item] = AppendOnlyList()
    tokens: int = 0
    original_tokens: int = 0
    """The size of all messages that the view stands for, as they came."""
    system: bytes = b""
    tools: bytes = b""
    preamble_tokens: int = 0
    model: str = ""

    @property
    def messages(self) -> list[Message]:
        """The message of each item, in order."""
        return [item.message for item in self.items]

    @property
    def total_tokens(self) -> int:
        """The size of the whole prompt: tools, system and messages."""
        return self.preamble_tokens + self.tokens

    def showing(self, items: Iterable[Item], *, original_tokens: int) -> "View":
        """Return the view with `items` instead, which stand for messages of the size `original_tokens`."""
        shown = AppendOnlyList(items)
        return replace(
            self, items=shown, tokens=sum([item.tokens for item in shown]), original_tokens=original_tokens
        )

    @property
    def joined(self) -> list[Message]:
        """The messages as they are written into a request, user messages joined (`neighbours_to_join`)."""
        messages = self.messages
        return join_neighbours(messages, neighbours_to_join(messages, self.items))

    def shown_numbers(self) -> set[int]:
        """Return the numbers of all messages in the view, whether shown or summarised."""
        return set(_numbers(self.items))


def _numbers(items: Iterable[Item]) -> Iterable[int]:
    for item in items:
        match item:
            case Original() | Edited():
                yield item.number
            case Summary():
                for span in item.sources:
                    yield from range(span.first, span.last + 1)


def bytes_of(view: View) -> int:
    """Return the approximate size in bytes of a request with this view."""
    return len(view.system) + len(view.tools) + sum([item.message.bytes for item in view.items])


def view_items(items: Iterable[Item]) -> tuple[ViewItem, ...]:
    """Return these items in the form a compaction's entry stores; a run of originals becomes one range."""
    described: list[ViewItem] = []
    first, last = 0, -1
    for item in items:
        if isinstance(item, Original) and item.number == last + 1:
            last += 1
            continue
        if first <= last:
            described.append(KeptRange(numbers=Numbers(first=first, last=last)))
        first, last = 0, -1
        match item:
            case Original(number=number):
                first = last = number
            case Edited():
                described.append(AlteredMessage(number=item.number, edits=item.edits, tokens=item.tokens))
            case Summary(message=message):
                described.append(
                    SummarizedSpan(
                        text=message_text(message),
                        role=message.role,
                        sources=item.sources,
                        tokens=item.tokens,
                        depth=item.depth,
                        block=block_in(message),
                    )
                )
    if first <= last:
        described.append(KeptRange(numbers=Numbers(first=first, last=last)))
    return tuple(described)


def shown_parts(item: Item) -> Iterator[tuple[tuple[int, ...], AnyPart]]:
    """Yield each part that an item shows, with the path that `apply_edits` takes; parts inside tool results too."""
    original = item.original if isinstance(item, Edited) else item.message
    edits = {edit.path: edit.by for edit in item.edits} if isinstance(item, Edited) else {}
    for at, part in enumerate(original.parts):
        shown = edits.get((at,), part) if edits else part
        if shown is None:
            continue
        if not isinstance(shown, ToolResult):
            yield (at,), shown
            continue
        inside = [
            (path, inner)
            for within, whole in enumerate(shown.parts)
            if (inner := edits.get(path := (at, within), whole)) is not None
        ]
        yield (at,), replace(shown, parts=tuple(inner for _, inner in inside)) if edits else shown
        yield from inside


def items_shown(messages: Sequence[Message], items: Sequence[Item]) -> list[Item | None]:
    """Return for each of `messages`, a view as it is sent, the item that it shows; None for a message that is in no item.

    Messages and items are in the same order, so an item is found by its position and content, with call ids as they are sent.
    Two equal messages may be one object (a store may load them so) or two, which must make no difference.
    """
    shown: list[Item | None] = []
    indexes: dict[bytes, list[int]] = {}
    next_item = 0
    for message in messages:
        if next_item < len(items) and items[next_item].message is message:
            shown.append(items[next_item])
            next_item += 1
            continue
        if not indexes:
            for at, sent in enumerate(with_unique_call_ids([item.message for item in items])):
                indexes.setdefault(sent.digest, []).append(at)
        known = indexes.get(message.digest, [])
        first = bisect_left(known, next_item)
        if first == len(known):
            shown.append(None)
            continue
        next_item = known[first] + 1
        shown.append(items[known[first]])
    return shown


def neighbours_to_join(messages: Sequence[Message], items: Sequence[Item]) -> tuple[int, ...]:
    """Return the indexes of those of `messages`, a view as it is sent, that are joined to the user message before them.

    Many chat templates and some providers reject two user messages in a row. So a summary next to a user message becomes
    part of it, and so does a user message that became a neighbour only because what was between them was removed.
    Messages that the client itself sent next to each other stay apart, and a provider's own compaction block stays alone.
    """
    joinable = [at for at in range(1, len(messages)) if _may_join(messages[at - 1], messages[at])]
    if not joinable:
        return ()
    shown = items_shown(messages, items)
    numbers = sorted(set(_numbers(items)))
    return tuple(at for at in joinable if not _sent_as_neighbours(shown[at - 1], shown[at], numbers))


def _may_join(before: Message, message: Message) -> bool:
    if (
        before.role != "user"
        or message.role != "user"
        or (before.name != message.name and _both_came_from_client(before, message))
    ):
        return False
    # In the Responses API a reasoning or tool item is no message: it has no content to add parts to.
    return not any(_is_opaque_item(each) for each in (before, message)) and not message.results


def _both_came_from_client(before: Message, message: Message) -> bool:
    return before.wire is not None and message.wire is not None


def _is_opaque_item(message: Message) -> bool:
    format = message.wire.format if message.wire is not None else None
    return format == "openai_responses" and any(isinstance(part, Opaque) for part in message.parts)


def _sent_as_neighbours(before: Item | None, item: Item | None, numbers: Sequence[int]) -> bool:
    """Return whether the client sent these two one after the other; `numbers` are all that are shown or summarised."""
    if before is None or item is None:
        return True
    if isinstance(before, Summary) or isinstance(item, Summary):
        return False
    return before.number < item.number and bisect_right(numbers, before.number) == bisect_left(
        numbers, item.number
    )


def join_neighbours(messages: Sequence[Message], at: Iterable[int]) -> list[Message]:
    """Return `messages` with those at the indexes `at` joined to the one before, by appending their parts."""
    into = set(at)
    joined: list[Message] = []
    for index, message in enumerate(messages):
        if index not in into or not joined:
            joined.append(message)
            continue
        before = joined.pop()
        envelope = before if before.wire is not None and message.wire is None else message
        joined.append(envelope.with_parts((*before.parts, *message.parts)))
    return joined


def tokens_of_items(items: Sequence[Item]) -> int:
    """Return the size of these items in counted tokens."""
    return sum([item.tokens for item in items])


def first_difference(before: Sequence[Item], after: Sequence[Item]) -> int:
    """Return the index of the first item that differs."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (old, new) in pairs if old is not new), min(len(before), len(after)))


def is_pin_block(item: Item) -> bool:
    """Return whether an item is a block of pins or of pinned files, rather than a summary of messages."""
    return isinstance(item, Summary) and item.depth <= PIN_BLOCK_DEPTH


def is_file_block(item: Item) -> bool:
    """Return whether an item is the block of pinned files, which holds no pins."""
    return isinstance(item, Summary) and item.depth == FILE_BLOCK_DEPTH


def newest_number(item: Item) -> int:
    """Return the highest number of the messages that an item stands for; 0 if it stands for none."""
    if isinstance(item, Summary):
        return item.sources[-1].last if item.sources else 0
    return item.number


def own_block(items: Sequence[Item]) -> Summary | None:
    """Return the block that was requested and is the first item of a view, if there is one."""
    first = items[0] if items else None
    return first if isinstance(first, Summary) and is_own_block(first) else None


def is_own_block(item: Item) -> bool:
    """Return whether an item is a compaction block that was requested from the provider."""
    return isinstance(item, Summary) and bool(block_in(item.message))
