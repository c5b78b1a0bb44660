"""One call to a model: the request, the response, and the reported usage."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.messages import Format, Message
from lowwater.core.stored_form import stored_as


class Usage(Struct, frozen=True, kw_only=True, rename=stored_as("usage"), forbid_unknown_fields=True):
    """The billed tokens of one call; the four input figures do not overlap, and their sum is the prompt."""

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """Written to the cache for the provider's default lifetime."""
    cache_write_long: int = 0
    """Written for the provider's long lifetime (Anthropic: 1 hour)."""
    output: int = 0

    @property
    def prompt(self) -> int:
        """All input tokens, however they were billed."""
        return self.uncached + self.cache_read + self.cache_write + self.cache_write_long


def together(usages: Iterable[Usage]) -> Usage:
    """Return the sum of several calls' usage. It cannot be priced: each call is billed by its own size."""
    each = tuple(usages)
    return Usage(
        uncached=sum(usage.uncached for usage in each),
        cache_read=sum(usage.cache_read for usage in each),
        cache_write=sum(usage.cache_write for usage in each),
        cache_write_long=sum(usage.cache_write_long for usage in each),
        output=sum(usage.output for usage in each),
    )


class Request(Struct, frozen=True, kw_only=True):
    """A decoded request; `body` is the bytes it arrived in.

    `system` and `tools` are JSON as sent, empty if there are none. In the chat format the system prompt is one of the
    messages; in the Responses format it is the `instructions`, and the items of one answer form one message.
    """

    format: Format
    body: bytes
    messages: tuple[Message, ...]
    system: bytes = b""
    tools: bytes = b""
    model: str = ""
    max_tokens: int | None = None


class Response(Struct, frozen=True, kw_only=True):
    """The answer, as a message that can be sent back, and what the request consumed."""

    message: Message
    usage: Usage | None = None
    """The usage of the call that gave the answer; None if the provider did not report it."""
    others: tuple[Usage, ...] = ()
    """The usage of further calls the provider made by itself, each billed by its own size: compactions, server-side tools."""
    reports_cache: bool = True
    """Whether the usage says how much was read from the cache; if not, a zero means nothing."""
    splits_writes: bool = True
    """Whether the usage says for which lifetime each part was written to the cache."""
    list_price: bool = True
    """Whether all of it was billed at the requested model's list prices: no other model, no other service tier."""
    prompt: int = 0
    """The size of the prompt that gave the answer; less than was billed if the provider made further calls."""
    model: str = ""
    stop: str = ""
    """Why the model stopped, as the provider puts it."""
    doubt: str = ""
    """Why the reported usage is implausible and ignored; empty if it is not, or nothing was reported."""
    unread: tuple[str, ...] = ()
    """What else could not be read and was left out: the names of fields beside the content."""
    miss_reason: str = ""
    """Why the cache was missed, as the provider puts it; empty if it gave no reason."""

    def unbelieved(self, why: str) -> "Response":
        """Return the response without its usage, which is implausible for the reason `why`."""
        return replace(self, usage=None, others=(), prompt=0, doubt=why)

    @property
    def calls(self) -> tuple[Usage, ...]:
        """The usage of everything that was billed; empty if the provider did not report it."""
        return self.others if self.usage is None else (self.usage, *self.others)
