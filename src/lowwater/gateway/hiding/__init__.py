"""Answers as a client sees them that knows nothing of recall: several of the provider's become one."""

from types import MappingProxyType
from typing import Any, Protocol

from lowwater.core.messages import Format
from lowwater.gateway.hiding.anthropic import AnthropicHiding
from lowwater.gateway.hiding.chat import ChatHiding
from lowwater.gateway.hiding.responses import ResponsesHiding


class Hiding(Protocol):
    """Takes the answers of one exchange, one behind the other, and gives what the client sees of them."""

    def take(self, event: bytes) -> list[bytes]:
        """Take the data of one event and return the bytes to pass on now; what may have to change is held back."""
        ...

    def again(self) -> None:
        """Take note that another answer follows, which goes on from what was recalled."""
        ...

    def whole(self, answer: bytes) -> None:
        """Take a whole answer instead of its events."""
        ...

    def is_waiting(self) -> bool:
        """Return whether the answer so far ends with nothing but recall calls."""
        ...

    def end(self) -> list[bytes]:
        """Return what was held back: the end of a stream."""
        ...

    def broken_off(self, error: dict[str, Any]) -> list[bytes]:
        """Return the end of a stream that cannot go on: what the provider says went wrong, so that its client raises it."""
        ...

    def answer(self) -> bytes:
        """Return what the client has seen as one whole answer."""
        ...


_HIDING: MappingProxyType[Format, type[Hiding]] = MappingProxyType(
    {"anthropic": AnthropicHiding, "openai_chat": ChatHiding, "openai_responses": ResponsesHiding}
)


def hiding_for(format: Format) -> Hiding:
    """Return what hides recall in answers of this format."""
    return _HIDING[format]()
