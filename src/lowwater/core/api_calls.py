"""One call to a model: the request, what was answered, and the usage that was reported."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.messages import Format, Message
from lowwater.core.stored_form import stored_as


class Usage(Struct, frozen=True, kw_only=True, rename=stored_as("usage"), forbid_unknown_fields=True):
    """Tokens of one call as billed: the four input figures do not overlap, their sum is the prompt."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """Written at the provider's default lifetime."""
    cache_write_long: int = 0
    """Written at the provider's long lifetime (1h at Anthropic)."""
    output: int = 0

    @property
    def prompt(self) -> int:
        """All input tokens, however they were billed."""
        return self.uncached + self.cache_read + self.cache_write + self.cache_write_long


def together(usages: Iterable[Usage]) -> Usage:
    """Return what several calls consumed together; it has no price, because the size of each call decides its own."""
    each = tuple(usages)
    return Usage(
        uncached=sum(usage.uncached for usage in each),
        cache_read=sum(usage.cache_read for usage in each),
        cache_write=sum(usage.cache_write for usage in each),
        cache_write_long=sum(usage.cache_write_long for usage in each),
        output=sum(usage.output for usage in each),
    )


class Request(Struct, frozen=True, kw_only=True):
    """A request body taken apart; `body` is the bytes it came in.

    `system` and `tools` are JSON as sent, empty where there are none. In the chat format the system prompt is among
    the messages; in the Responses format it is the `instructions`, and the items of an answer are one message.
    """

    format: Format
    body: bytes
    messages: tuple[Message, ...]
    system: bytes = b""
    tools: bytes = b""
    model: str = ""
    max_tokens: int | None = None


class Response(Struct, frozen=True, kw_only=True):
    """The answer as a message that can be sent back, and what the request consumed."""

    message: Message
    usage: Usage | None = None
    """The call that gave the answer; None if the provider did not say."""
    others: tuple[Usage, ...] = ()
    """Calls the provider made beside it on its own, each billed by its own size: compactions, turns of its tools."""
    cache_told: bool = True
    """Whether the usage says how much was read from the cache; where it does not, nothing follows from a zero."""
    list_price: bool = True
    """Whether all of it was billed at the prices of the model that was asked: not by another, nor at another tier."""
    prompt: int = 0
    """The size of the prompt that gave the answer; less than was billed where the provider made other calls."""
    model: str = ""
    stop: str = ""
    """Why the model stopped, in the provider's word."""
    doubt: str = ""
    """Why what the provider reported is not believed; empty if it is, or nothing was reported."""
    miss_reason: str = ""
    """Why the provider's cache was missed, in its word; empty if it named no reason."""

    def unbelieved(self, why: str) -> "Response":
        """Return the answer as if its usage had not been reported, and why it is not believed."""
        return replace(self, usage=None, others=(), prompt=0, doubt=why)

    @property
    def calls(self) -> tuple[Usage, ...]:
        """Everything that was billed; empty if the provider did not say."""
        return self.others if self.usage is None else (self.usage, *self.others)
