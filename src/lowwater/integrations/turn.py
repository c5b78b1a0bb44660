"""One call of the model in a framework's loop: prepare before it, record behind it, in either colour."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.refusals import refuses_images
from lowwater.core.messages import Format, Message
from lowwater.core.strict_json import read_fields
from lowwater.errors import BadInput
from lowwater.integrations.shown import Sending, sending
from lowwater.integrations.units import Unit, format_of, wire_of, wires_of
from lowwater.session.session import Session

S = TypeVar("S")


class Preamble(Struct, frozen=True, kw_only=True):
    """What a request carries beside its messages, as `prepare` takes it."""

    system: str = ""
    tools: Sequence[object] = ()
    max_tokens: int | None = None
    thinking: object = None
    """Claude's `thinking`, where the framework says it: a compaction may forbid a budget for the rest of a tool loop."""


def begin(session: Session, units: Sequence[Unit[S]], preamble: Preamble) -> Sending[S]:
    """Return what to send for a conversation, compacted only if it pays."""
    wires = wires_of(units, format_of(session))
    request = session.prepare(wires, starts_over=True, **_options(preamble))
    return sending(request, session.ledger, units)


async def abegin(session: Session, units: Sequence[Unit[S]], preamble: Preamble) -> Sending[S]:
    """Do what `begin` does without blocking the event loop."""
    wires = wires_of(units, format_of(session))
    request = await session.aprepare(wires, starts_over=True, **_options(preamble))
    return sending(request, session.ledger, units)


def _options(preamble: Preamble) -> dict[str, Any]:
    return {name: getattr(preamble, name) for name in preamble.__struct_fields__}


class Answered(Struct, frozen=True, kw_only=True):
    """A model's answer as the ledger gets it."""

    message: Message
    usage: Usage | None = None
    """None if the framework does not tell."""
    cache_told: bool = True
    model: str = ""
    stop: str = ""

    def response(self, format: Format) -> bytes:
        """Return it as the provider's API would have answered."""
        wire = wire_of(self.message, format)
        if format == "anthropic":
            return msgspec.json.encode(
                {
                    "role": "assistant",
                    "content": Raw(read_fields(wire)["content"]),
                    "model": self.model,
                    "stop_reason": self.stop,
                    "usage": self.usage and _as_anthropic(self.usage),
                }
            )
        choice = {"message": Raw(wire), "finish_reason": self.stop}
        usage = self.usage and _as_chat(self.usage, cache_told=self.cache_told)
        return msgspec.json.encode({"choices": [choice], "model": self.model, "usage": usage})


def learns(session: Session, error: Exception) -> bool:
    """Return whether an error taught that the window is smaller than believed, so that the call may be tried once more.

    Where it refuses the images, older ones are dropped.
    """
    if refuses_images(str(error)):
        return session.drop_images()
    believed = session.status().context
    try:
        return session.learn_context_length(error) < believed
    except BadInput:
        return False


def system_of(sent: Sending[S]) -> str:
    """Return the system prompt of a request that was begun with one in words: a policy may have added to it."""
    system = sent.request.system
    return str(msgspec.json.decode(system)) if system else ""


def _as_anthropic(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.uncached,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write + usage.cache_write_long,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": usage.cache_write_long,
        },
        "output_tokens": usage.output,
    }


def _as_chat(usage: Usage, *, cache_told: bool) -> dict[str, Any]:
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "prompt_tokens_details": details if cache_told else None,
    }
