"""The views of real peers' packages at the sizes of Lowwater's, each made by the package itself in an environment of its own.

Each is told to start at once, to summarise with the stand-in that Lowwater has too, and to keep so much of the newest, in its own unit: the
most with which its view fits into as many tokens as Lowwater's has. Where even the least does not fit, there is no view. Hermes' compressor
is not among them: it never starts below 64,000 tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from msgspec import Struct

from bench.likelihood.points import Decision
from bench.likelihood.prompts import Chat, prompt_tokens
from bench.likelihood.views import largest_that_fits, summary_size
from bench.peers.catalogue import LANGCHAIN, LITELLM, PYDANTIC_AI, STRANDS, Package
from bench.peers.environment import Unavailable, python_with
from bench.peers.worker import Worker

KEPT = (40, 20, 12, 8, 6, 4, 3, 2, 1)
"""What is tried of those that are told how many messages, results or pairs to keep."""
SHARES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.25)
"""What is tried of those that are told a number of tokens, as a share of those that are left."""
LIMIT = 120.0


class Compared(Struct, frozen=True, kw_only=True):
    """A peer's variant, and in what it is told how much to keep."""

    name: str
    package: Package
    variant: str
    in_tokens: bool = False


COMPARED = (
    Compared(name="langchain", package=LANGCHAIN, variant="defaults"),
    Compared(name="langchain-editing", package=LANGCHAIN, variant="editing"),
    Compared(name="pydantic-ai-clear", package=PYDANTIC_AI, variant="clear"),
    Compared(name="pydantic-ai-summarising", package=PYDANTIC_AI, variant="summarising"),
    Compared(name="strands", package=STRANDS, variant="summarizing"),
    Compared(name="litellm-trim", package=LITELLM, variant="trim", in_tokens=True),
    Compared(name="litellm-compress", package=LITELLM, variant="compress", in_tokens=True),
)


class Peers:
    """The packages, each in a process that is asked for one view after another; inside a `with` block."""

    def __init__(self, compared: Sequence[Compared] = COMPARED) -> None:
        self._compared = compared
        self._workers: dict[str, Worker] = {}
        self.failed: dict[str, str] = {}
        """Why a peer has no views any more."""
        self._stack = ExitStack()

    def __enter__(self) -> "Peers":
        self._stack.__enter__()
        for each in self._compared:
            self._start(each)
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401
        self._stack.__exit__(*error)

    def versions(self) -> dict[str, str]:
        """Return the versions of all packages."""
        found: dict[str, str] = {}
        for worker in self._workers.values():
            found |= worker.versions
        return found

    def views(
        self, decision: Decision, sizes: Mapping[str, tuple[int, int]]
    ) -> Iterator[tuple[str, Sequence[Chat]]]:
        """Yield each peer's view under each ceiling; `sizes` has for each the ceiling and the tokens that may be used."""
        for each in self._compared:
            for label, (ceiling, most) in sizes.items():
                view = self._view(each, decision, ceiling, most)
                if view is not None:
                    yield f"{each.name}-{label}", view

    def _view(self, each: Compared, decision: Decision, ceiling: int, most: int) -> Sequence[Chat] | None:
        def made(knob: float) -> Sequence[Chat] | None:
            worker = self._workers.get(each.name)
            if worker is None:
                return None
            trigger = round(knob * most) if each.in_tokens else min(ceiling, most)
            try:
                worker.begin(
                    trigger=max(1, trigger),
                    keep=0 if each.in_tokens else int(knob),
                    summary=summary_size(ceiling),
                )
                return worker.request([dict(message) for message in decision.messages], None).messages
            except Unavailable as reason:
                self.failed[f"{each.name} at {decision.point.name}"] = str(reason)
                self._start(each)
                return None

        return largest_that_fits(made, most, SHARES if each.in_tokens else KEPT)

    def _start(self, each: Compared) -> None:
        """Start a peer's process, or note why it cannot be run."""
        self._workers.pop(each.name, None)
        try:
            python = python_with(each.package.environment, *each.package.requirements)
            worker = Worker(
                python,
                each.package.worker,
                variant=each.variant,
                packages=each.package.packages,
                tools=(),
                limit=LIMIT,
            )
            self._workers[each.name] = self._stack.enter_context(worker)
        except Unavailable as reason:
            self.failed[each.name] = str(reason)


def sizes_of(views: Mapping[str, Sequence[Chat]], ceilings: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return for each ceiling what it is and how many tokens Lowwater's view has."""
    return {
        label: (ceiling, len(prompt_tokens(views[f"lowwater-{label}"])))
        for label, ceiling in ceilings.items()
    }
