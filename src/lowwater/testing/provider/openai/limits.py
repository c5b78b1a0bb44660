"""Chat rules about size, cache breakpoints and streaming options."""

from collections.abc import Iterator

from lowwater.testing.provider.openai.body import (
    breakpoints,
    invalid,
    output_limit,
    pieces,
    version,
    wrong_type,
)
from lowwater.testing.provider.prompt import prompt_tokens
from lowwater.testing.provider.rule import Incoming, Violation

MOST_BREAKPOINTS = 4


def output_limit_positive(incoming: Incoming) -> Iterator[Violation]:
    """At least one token of output has to be allowed."""
    for name in ("max_completion_tokens", "max_tokens"):
        limit = incoming.body.get(name)
        if limit is not None and type(limit) is not int:
            yield wrong_type(name, "an integer", limit)
        elif limit is not None and limit < 1:
            yield invalid(
                f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {limit} instead.",
                name,
                "integer_below_min_value",
            )


def stream_options_need_stream(incoming: Incoming) -> Iterator[Violation]:
    """Options of a stream come with a stream."""
    options = incoming.body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        yield wrong_type("stream_options", "an object", options)
    elif options is not None and not incoming.body.get("stream"):
        yield invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
        )


def breakpoints_supported(incoming: Incoming) -> Iterator[Violation]:
    """Explicit cache breakpoints exist from GPT-5.6 on."""
    known = version(incoming.model)
    if any(breakpoints(incoming.body)) and (known is None or known < (5, 6)):
        yield invalid(
            "prompt_cache_breakpoint is not supported on this model",
            "prompt_cache_breakpoint",
            "invalid_parameter",
        )


def at_most_four_breakpoints(incoming: Incoming) -> Iterator[Violation]:
    """A request has four explicit breakpoints."""
    found = list(breakpoints(incoming.body))
    if len(found) > MOST_BREAKPOINTS:
        yield invalid(
            f"A maximum of {MOST_BREAKPOINTS} explicit prompt_cache_breakpoint blocks may be provided. "
            f"Found {len(found)}.",
            found[MOST_BREAKPOINTS],
            "invalid_value",
        )


def lifetime_sold(incoming: Incoming) -> Iterator[Violation]:
    """From GPT-5.6 on a chat request may ask for a cache lifetime of 30 minutes; longer ones are sold elsewhere."""
    known, options = version(incoming.model), incoming.body.get("prompt_cache_options")
    if options is not None and not isinstance(options, dict):
        yield wrong_type("prompt_cache_options", "an object", options)
    elif options and known is not None and known >= (5, 6) and options.get("ttl", "30m") != "30m":
        yield invalid(
            f"Invalid value: '{options['ttl']}'. Supported values are: '30m'.",
            "prompt_cache_options.ttl",
            "invalid_value",
        )


def prompt_fits(incoming: Incoming) -> Iterator[Violation]:
    """The prompt fits the context length."""
    size = prompt_tokens(pieces(incoming.body), incoming.count)
    if size > incoming.context_length:
        yield _too_long(
            incoming, f"your messages resulted in {size} tokens. Please reduce the length of the messages."
        )


def output_fits(incoming: Incoming) -> Iterator[Violation]:
    """The prompt and the output asked for fit the context length together."""
    size, output = prompt_tokens(pieces(incoming.body), incoming.count), output_limit(incoming.body)
    if output is not None and size + output > incoming.context_length:
        yield _too_long(
            incoming,
            f"you requested {size + output} tokens ({size} in the messages, {output} in the completion). "
            "Please reduce the length of the messages or completion.",
        )


def _too_long(incoming: Incoming, however: str) -> Violation:
    return invalid(
        f"This model's maximum context length is {incoming.context_length} tokens. However, {however}",
        "messages",
        "context_length_exceeded",
    )
