"""What the model is shown now: items that each stand for numbered messages."""

from collections.abc import Iterable

from msgspec import Struct

from lowwater.values.chain import Chain
from lowwater.values.entries import Numbers
from lowwater.values.message import Message


class Original(Struct, frozen=True, kw_only=True, tag="original"):
    """A message as it was appended."""

    number: int
    message: Message
    tokens: int


class Edited(Struct, frozen=True, kw_only=True, tag="edited"):
    """A message with some parts replaced by placeholders."""

    number: int
    message: Message
    tokens: int


class Summary(Struct, frozen=True, kw_only=True, tag="summary"):
    """A message that stands for others."""

    message: Message
    tokens: int
    sources: tuple[Numbers, ...]
    depth: int


Item = Original | Edited | Summary


class View(Struct, frozen=True, kw_only=True):
    """The fold of a ledger: what is sent, and how large it is in the session's vocabulary."""

    items: Chain[Item] = Chain()
    tokens: int = 0
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
