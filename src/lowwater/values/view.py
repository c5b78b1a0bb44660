"""What the model is shown now: items that each stand for numbered messages."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from lowwater.values.chain import Chain
from lowwater.values.entries import Altered, Edit, Kept, Numbers, Stand, Summarized
from lowwater.values.message import Message
from lowwater.values.native_block import block_in, said_in
from lowwater.values.parts import AnyPart, ToolResult


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


def stands_of(items: Iterable[Item]) -> tuple[Stand, ...]:
    """Return what a compaction would have to say to show exactly these items; runs of originals become one range."""
    stands: list[Stand] = []
    first, last = 0, -1
    for item in items:
        if isinstance(item, Original) and item.number == last + 1:
            last += 1
            continue
        if first <= last:
            stands.append(Kept(numbers=Numbers(first=first, last=last)))
        first, last = 0, -1
        match item:
            case Original(number=number):
                first = last = number
            case Edited():
                stands.append(Altered(number=item.number, edits=item.edits, tokens=item.tokens))
            case Summary(message=message):
                stands.append(
                    Summarized(
                        text=said_in(message),
                        role=message.role,
                        sources=item.sources,
                        tokens=item.tokens,
                        depth=item.depth,
                        block=block_in(message),
                    )
                )
    if first <= last:
        stands.append(Kept(numbers=Numbers(first=first, last=last)))
    return tuple(stands)


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

    items: Chain[Item] = Chain()
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
        shown = Chain(items)
        return replace(self, items=shown, tokens=sum([item.tokens for item in shown]), whole=whole)

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
