"""Picks how a model is counted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec.structs import replace

from lowwater.core.tokens.calibration import Calibration
from lowwater.core.tokens.counting import Framing, count_message, count_preamble, rules_for
from lowwater.core.turns.state import Setup
from lowwater.load.tokenizer import tokenizer_for
from lowwater.protocols import Tokenizer

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("lowwater_check", default=None)


@contextmanager
def checked_while_counting(check: Callable[[], None]) -> Iterator[None]:
    """Call `check` again and again while a session is worked on inside the block: what it raises ends that work.

    The core does not look at the world, but whatever it does to many messages it counts.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


class CheckedTokenizer:
    """A tokenizer that lets work be given up between two texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @property
    def vocabulary(self) -> str:
        """The name of the vocabulary it counts in."""
        return self._tokenizer.vocabulary

    def count(self, text: str, /) -> int:
        """Return the number of tokens in `text`."""
        if (check := _CHECK.get()) is not None:
            check()
        return self._tokenizer.count(text)


def vocabulary_for(model: str) -> str:
    """Return the name of the vocabulary `model` is counted in; Claude's is not public and counts in o200k."""
    return rules_for(model).vocabulary


def counter_for(model: str) -> Tokenizer:
    """Return the tokenizer for `model`: exact for its vocabulary, or the estimate without the tokenizer package."""
    return tokenizer_for(vocabulary_for(model))


def framing_for(model: str) -> Framing:
    """Return what the provider of `model` writes around content."""
    return rules_for(model).framing


def calibration_for(model: str) -> Calibration:
    """Return the calibration a session with `model` starts from."""
    return Calibration(prior=rules_for(model).scale)


def counted_in(setup: Setup, tokenizer: Tokenizer, model: str) -> Setup:
    """Return the setup with messages counted in another vocabulary, framed as `model` frames them."""
    framing = framing_for(model)
    return replace(
        setup,
        tokenizer=tokenizer,
        size=lambda message: count_message(message, tokenizer, framing=framing),
        size_preamble=lambda system, tools: count_preamble(system, tools, tokenizer),
    )
