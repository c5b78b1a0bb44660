"""What all workers share: how they are started, and the one line that they print.

Standard library only: workers import it in environments of their own.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the harness tells a worker."""

    base_url: str
    """The provider without a path: what the Anthropic SDK takes; `openai_url` is for OpenAI's."""
    compaction: str
    """`lowwater`, `own` or `none`."""
    turns: int
    model: str
    window: int

    recorded: str = ""
    """The file with a recorded session to play instead of the generated one."""
    max_tokens: int = 4_000
    """What the model may write at most: every request says so, for the room is taken from the window."""

    @property
    def openai_url(self) -> str:
        """What the OpenAI SDK takes as its base URL."""
        return f"{self.base_url}/v1"

    @property
    def speaks_anthropic(self) -> bool:
        """Whether the model is asked through the Messages API."""
        return self.model.startswith("claude")


@dataclass(kw_only=True)
class Report:
    """What a worker tells the harness; it may be filled as the session goes on."""

    turns: int = 0
    """Turns that were answered."""
    error: str = ""
    """Why it stopped early, in a sentence; empty if it did not."""
    version: str = ""
    """The framework's own version."""
    how: str = ""
    """What compacted, in a few words: the name of the class and its options."""
    kept: int | None = None
    """How many tool results the framework's own history still holds whole at the end; None where there is no history."""
    compactions: int | None = None
    """How many compactions there were, where the worker knows."""
    recorded: dict[str, int] = field(default_factory=dict)
    """With Lowwater: the sums of the usage that it recorded, by the names of `lowwater.core.api_calls.Usage`."""


def run(
    play: Callable[[Told, Report], Coroutine[Any, Any, None] | None], argv: Sequence[str] | None = None
) -> None:
    """Play a session as the command line says, `async` or not, and print what came of it as one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--compaction", required=True, choices=("lowwater", "own", "none"))
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--model", default="gpt-6.1-sol")
    parser.add_argument("--window", type=int, default=64_000)
    parser.add_argument("--recorded", default="")
    told: dict[str, Any] = vars(parser.parse_args(argv))
    report = Report()
    try:
        playing = play(Told(**told), report)
        if playing is not None:
            asyncio.run(playing)
    except Exception as error:  # noqa: BLE001 - a framework may raise anything; the harness tells what
        report.error = f"{type(error).__name__}: {str(error)[:300]}"
    sys.stdout.write(json.dumps(asdict(report)) + "\n")
