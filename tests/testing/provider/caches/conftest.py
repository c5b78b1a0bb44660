"""Prompts of given weights, and a cache under a clock that the test moves."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.testing.provider.caches import Cache, Used
from lowwater.testing.provider.prompt import Prompt, PromptPiece


def pieces(
    weights: tuple[int, ...], marks: dict[int, str] | None = None, texts: dict[int, str] | None = None
) -> list[PromptPiece]:
    """Pieces counted in characters, some of them marked or with other text."""
    return [
        PromptPiece(
            section="messages",
            path=str(at),
            value={"type": "text", "text": (texts or {}).get(at, "x") * weight},
            mark=(marks or {}).get(at, ""),
        )
        for at, weight in enumerate(weights)
    ]


class Till:
    """Bills prompts with one cache; `now` is the clock, `answer` the weights of what comes back."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.now = 0.0

    def bill(
        self,
        *weights: int,
        marks: dict[int, str] | None = None,
        texts: dict[int, str] | None = None,
        answer: tuple[int, ...] = (),
        **asked: Any,
    ) -> Used:
        prompt = Prompt(pieces(weights, marks, texts), len, answer=pieces(answer), **asked)
        return self.cache.use(prompt, self.now)


@pytest.fixture
def till() -> Callable[[Cache], Till]:
    return Till
