"""A recorded conversation taken apart into the turns it was made of, to be played again with answers as APIs give them."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from lowwater.values.usage import Usage


class Exchange(Struct, frozen=True, kw_only=True):
    """What was new before one call of the model, and its answer; None where the recording ends without one."""

    new: tuple[Any, ...]
    answer: Any | None


def exchanges(messages: Iterable[Any]) -> Iterator[Exchange]:
    """Yield the turns of a list of messages in either format, as Python objects."""
    new: list[Any] = []
    for message in messages:
        if message["role"] == "assistant" and new:
            yield Exchange(new=tuple(new), answer=message)
            new = []
        else:
            new.append(message)
    if new:
        yield Exchange(new=tuple(new), answer=None)


def as_message(content: object, usage: Usage, model: str = "") -> dict[str, Any]:
    """Return an answer as Anthropic's API gives it: content blocks, and what the call is billed."""
    return {
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": usage.uncached,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": usage.output,
        },
    }


def as_completion(message: object, usage: Usage, model: str = "") -> dict[str, Any]:
    """Return an answer as a chat API gives it that reports its cache writes."""
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "prompt_tokens_details": {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": usage.cache_write,
            },
        },
    }
