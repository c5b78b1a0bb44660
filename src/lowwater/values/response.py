"""What a provider answered to one request."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.values.message import Message
from lowwater.values.usage import Usage


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
