"""A recorded answer in the form in which a provider's API returns one, with its usage: what `response` reads."""

from typing import Any

from lowwater.values.usage import Usage


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
