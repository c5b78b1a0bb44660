"""Messages rules about size: what fits into the context length."""

from collections.abc import Iterator

from lowwater.testing.provider.anthropic.body import invalid, pieces
from lowwater.testing.provider.prompt import prompt_tokens
from lowwater.testing.provider.rule import Incoming, Violation


def prompt_fits(incoming: Incoming) -> Iterator[Violation]:
    """The prompt fits the context length."""
    if incoming.counting:
        return
    size = prompt_tokens(pieces(incoming.body), incoming.count)
    if size > incoming.context_length:
        yield invalid(f"prompt is too long: {size} tokens > {incoming.context_length} maximum")


def output_fits(incoming: Incoming) -> Iterator[Violation]:
    """The prompt and the output asked for fit the context length together."""
    if incoming.counting:
        return
    size, output = prompt_tokens(pieces(incoming.body), incoming.count), incoming.body["max_tokens"]
    if size + output > incoming.context_length:
        yield invalid(
            f"input length and `max_tokens` exceed context limit: {size} + {output} > {incoming.context_length}, "
            "decrease input length or `max_tokens` and try again"
        )
