"""What the loop needs from the outside: a model to ask, and somebody who watches."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from lowwater.chat.tools.tool import Outcome
from lowwater.core.messages import Format, ToolCall

Show = Callable[[str], None]
"""Takes a piece of an answer's text as it comes."""


class Upstream(Protocol):
    """One model at one place."""

    @property
    def model(self) -> str:
        """The model that answers, as the user spells it."""
        ...

    @property
    def base_url(self) -> str:
        """Where it is asked; empty for its provider's own address."""
        ...

    @property
    def format(self) -> Format:
        """The format that is spoken there."""
        ...

    @property
    def max_output(self) -> int | None:
        """The tokens that its answers can have at most; None if that is not known."""
        ...

    def ask(self, fields: Mapping[str, Any], *, max_tokens: int, show: Show) -> bytes:
        """Return the whole answer, its text shown as it comes; raise AnswerFailed, or PromptTooLong.

        Whatever stops it half way, the user included, is an AnswerFailed with what came until then.
        """
        ...


class Watcher(Protocol):
    """Is shown what happens in a turn."""

    def said(self, piece: str, /) -> None:
        """Take a piece of the model's text."""
        ...

    def calling(self, call: ToolCall, /) -> None:
        """Take a tool call that is about to be answered."""
        ...

    def called(self, call: ToolCall, outcome: Outcome, /) -> None:
        """Take the outcome of a tool call."""
        ...

    def note(self, sentence: str, /) -> None:
        """Take something worth knowing that nobody said."""
        ...
