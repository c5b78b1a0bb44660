"""Responses rules about size and cache breakpoints."""

from collections.abc import Callable, Iterator

from lowwater.testing.provider.openai.body import invalid, version, wrong_type
from lowwater.testing.provider.openai.shape import LONGEST_NAME
from lowwater.testing.provider.prompt import Piece, prompt_tokens
from lowwater.testing.provider.responses_api.body import breakpoints
from lowwater.testing.provider.responses_api.shape import names
from lowwater.testing.provider.rule import Incoming, Rule, Violation

LEAST_OUTPUT = 16
MOST_BREAKPOINTS = 4
LIFETIMES = ("30m", "12h")


def name_lengths(incoming: Incoming) -> Iterator[Violation]:
    """Names of functions have 1 to 64 characters, offered or called."""
    for where, name in names(incoming.body):
        if not 0 < len(name) <= LONGEST_NAME:
            yield invalid(
                f"Invalid '{where}': string too long. Expected a string with maximum length {LONGEST_NAME}, "
                f"but got a string with length {len(name)} instead.",
                where,
                "string_above_max_length",
            )


def least_output(incoming: Incoming) -> Iterator[Violation]:
    """At least sixteen tokens of output have to be allowed."""
    limit = incoming.body.get("max_output_tokens")
    if limit is not None and type(limit) is not int:
        yield wrong_type("max_output_tokens", "an integer", limit)
    elif limit is not None and limit < LEAST_OUTPUT:
        yield invalid(
            f"Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, "
            f"but got {limit} instead.",
            "max_output_tokens",
            "integer_below_min_value",
        )


def breakpoints_supported(incoming: Incoming) -> Iterator[Violation]:
    """Explicit cache breakpoints exist from GPT-5.6 on, four of them in a request."""
    found, known = list(breakpoints(incoming.body)), version(incoming.model)
    if found and (known is None or known < (5, 6)):
        yield invalid(
            "prompt_cache_breakpoint is not supported on this model",
            "prompt_cache_breakpoint",
            "invalid_parameter",
        )
    if len(found) > MOST_BREAKPOINTS:
        yield invalid(
            f"A maximum of {MOST_BREAKPOINTS} explicit prompt_cache_breakpoint blocks may be provided. "
            f"Found {len(found)}.",
            found[MOST_BREAKPOINTS],
            "invalid_value",
        )


def lifetime_sold(incoming: Incoming) -> Iterator[Violation]:
    """A cache lives for thirty minutes or, here only, for twelve hours."""
    options = incoming.body.get("prompt_cache_options")
    if options is not None and not isinstance(options, dict):
        yield wrong_type("prompt_cache_options", "an object", options)
    elif options and options.get("ttl", "30m") not in LIFETIMES:
        yield invalid(
            f"Invalid value: '{options['ttl']}'. Supported values are: '30m' and '12h'.",
            "prompt_cache_options.ttl",
            "invalid_value",
        )


def input_fits(prompt: Callable[[Incoming], list[Piece]]) -> Rule:
    """Return the rule that a prompt fits the context length, unless the provider may truncate it."""

    def input_fits(incoming: Incoming) -> Iterator[Violation]:
        """The prompt fits the context length."""
        size = prompt_tokens(prompt(incoming), incoming.count)
        if size > incoming.context_length and incoming.body.get("truncation") != "auto":
            yield invalid(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                "input",
                "context_length_exceeded",
            )

    return input_fits
