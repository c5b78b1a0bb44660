"""What a provider answered to one request."""

from msgspec import Struct

from lowwater.values.message import Message
from lowwater.values.usage import Usage


class Response(Struct, frozen=True, kw_only=True):
    """The answer as a message that can be sent back, and what the call consumed."""

    message: Message
    usage: Usage | None = None
    prompt: int = 0
    """The size of the prompt that gave the answer; less than was billed where the provider compacted on its own."""
    model: str = ""
    stop: str = ""
    """Why the model stopped, in the provider's word."""
