"""What the model is shown now: items that each stand for numbered messages."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import AlteredMessage, Edit, KeptRange, Numbers, SummarizedSpan, ViewItem
from lowwater.core.messages import AnyPart, Message, Opaque, ToolResult, block_in, said_in
from lowwater.core.sequences import AppendOnlyList


class Original(Struct, frozen=True, kw_only=True, tag="original"):
    """A message as it was appended."""

    number: int
    message: Message
    tokens: int


class Edited(Struct, frozen=True, kw_only=True, tag="edited"):
    """A message with some parts replaced by placeholders; `edits` lead from the original to what is shown."""

    number: int
    original: Message
    edits: tuple[Edit, ...]
    message: Message
    tokens: int


class Summary(Struct, frozen=True, kw_only=True, tag="summary"):
    """A message that stands for others."""

    message: Message
    tokens: int
    sources: tuple[Numbers, ...]
    depth: int


Item = Original | Edited | Summary


def view_items(items: Iterable[Item]) -> tuple[ViewItem, ...]:
    """Return what a compaction would have to say to show exactly these items; runs of originals become one range."""
    stands: list[ViewItem] = []
    first, last = 0, -1
    for item in items:
        if isinstance(item, Original) and item.number == last + 1:
            last += 1
            continue
        if first <= last:
            stands.append(KeptRange(numbers=Numbers(first=first, last=last)))
        first, last = 0, -1
        match item:
            case Original(number=number):
                first = last = number
            case Edited():
                stands.append(AlteredMessage(number=item.number, edits=item.edits, tokens=item.tokens))
            case Summary(message=message):
                stands.append(
                    SummarizedSpan(
                        text=said_in(message),
                        role=message.role,
                        sources=item.sources,
                        tokens=item.tokens,
                        depth=item.depth,
                        block=block_in(message),
                    )
                )
    if first <= last:
        stands.append(KeptRange(numbers=Numbers(first=first, last=last)))
    return tuple(stands)


def neighbours_to_join(messages: Sequence[Message], items: Sequence[Item]) -> tuple[int, ...]:
    """Return which of `messages`, a view as it is sent, are written into the user message before them.

    Many templates and some providers refuse two user messages in a row. A summary that stands beside a user's message
    becomes a part of it, and so does a user's message that only the removal of what was between them made a neighbour.
    What the client itself sent as neighbours stays apart, and a provider's own block stands alone.
    """
    doubled = [at for at in range(1, len(messages)) if _may_fold(messages[at - 1], messages[at])]
    if not doubled:
        return ()
    shown = items_shown(messages, items)
    numbers = sorted(set(_numbers(items)))
    return tuple(at for at in doubled if not _are_the_clients(shown[at - 1], shown[at], numbers))


def items_shown(messages: Sequence[Message], items: Sequence[Item]) -> list[Item | None]:
    """Return for each of `messages`, a view as it is sent, the item that it shows; None for what only the sending added.

    Messages and items are in one order, so an item is found by its place and content. Two messages that say the same
    may be one object (a store reads them so) or two: that must make no difference.
    """
    shown: list[Item | None] = []
    places: dict[bytes, list[int]] = {}
    behind = 0
    for message in messages:
        if behind < len(items) and items[behind].message is message:
            shown.append(items[behind])
            behind += 1
            continue
        if not places:
            for at, item in enumerate(items):
                places.setdefault(item.message.digest, []).append(at)
        known = places.get(message.digest, [])
        first = bisect_left(known, behind)
        if first == len(known):
            shown.append(None)
            continue
        behind = known[first] + 1
        shown.append(items[known[first]])
    return shown


def join_neighbours(messages: Sequence[Message], at: Iterable[int]) -> list[Message]:
    """Return the messages with those at these indexes written into the one before, each as parts of its own."""
    into = set(at)
    written: list[Message] = []
    for index, message in enumerate(messages):
        if index not in into or not written:
            written.append(message)
            continue
        before = written.pop()
        around = before if before.wire is not None and message.wire is None else message
        written.append(around.with_parts((*before.parts, *message.parts)))
    return written


def _may_fold(before: Message, message: Message) -> bool:
    if (
        before.role != "user"
        or message.role != "user"
        or (before.name != message.name and _has_wires(before, message))
    ):
        return False
    # An item of the Responses API that is no message has no content to add to.
    return not any(_is_opaque_item(each) for each in (before, message)) and not message.results


def _has_wires(before: Message, message: Message) -> bool:
    return before.wire is not None and message.wire is not None


def _is_opaque_item(message: Message) -> bool:
    format = message.wire.format if message.wire is not None else None
    return format == "openai_responses" and any(isinstance(part, Opaque) for part in message.parts)


def _are_the_clients(before: Item | None, item: Item | None, numbers: Sequence[int]) -> bool:
    """Return whether the client has these two as neighbours: nothing that is shown or summarised came between them."""
    if before is None or item is None:
        return True
    if isinstance(before, Summary) or isinstance(item, Summary):
        return False
    return before.number < item.number and bisect_right(numbers, before.number) == bisect_left(
        numbers, item.number
    )


def parts_of(item: Item) -> Iterator[tuple[tuple[int, ...], AnyPart]]:
    """Yield each part an item shows with its path for `apply_edits`, parts inside tool results too."""
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


class View(Struct, frozen=True, kw_only=True):
    """The fold of a ledger: what is sent, and how large it is in the session's vocabulary."""

    items: AppendOnlyList[Item] = AppendOnlyList()
    tokens: int = 0
    whole: int = 0
    """The size of all messages that it stands for, as they came."""
    system: bytes = b""
    tools: bytes = b""
    preamble_tokens: int = 0
    model: str = ""

    @property
    def messages(self) -> list[Message]:
        """The messages as the model sees them."""
        return [item.message for item in self.items]

    @property
    def total_tokens(self) -> int:
        """The size of the whole prompt: tools, system and messages."""
        return self.preamble_tokens + self.tokens

    def showing(self, items: Iterable[Item], *, whole: int) -> "View":
        """Return the view with other items, which stand for messages of the size `whole`."""
        shown = AppendOnlyList(items)
        return replace(self, items=shown, tokens=sum([item.tokens for item in shown]), whole=whole)

    @property
    def joined(self) -> list[Message]:
        """The messages as they are written into a request: see `folded`."""
        messages = self.messages
        return join_neighbours(messages, neighbours_to_join(messages, self.items))

    def shown_numbers(self) -> set[int]:
        """The numbers of all messages that stand in the view, in person or inside a summary."""
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
    """Return about how many bytes a request with this view has."""
    return len(view.system) + len(view.tools) + sum([item.message.bytes for item in view.items])
