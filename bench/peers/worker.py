"""A peer as a process beside this one, asked for one request after another."""

import select
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Struct

from bench.peers.environment import ROOT, Unavailable
from bench.peers.took import Took

A = TypeVar("A")
TRIGGER, WINDOW = 100_000, 200_000
"""Where the first measurement let all of them start, and the window they are told."""


class Answer(Struct, frozen=True, kw_only=True):
    """A request that a peer would send, what its summariser was asked for it, and what it took to make."""

    messages: list[dict[str, Any]]
    asked: list[str]
    took: Took


class Worker:
    """One session of a peer, inside a `with` block; `module` is what `python` runs.

    It raises Unavailable if the process ends, or has not given all its answers after `limit` seconds.
    """

    def __init__(
        self,
        python: Path,
        module: str,
        *,
        variant: str,
        packages: Sequence[str],
        tools: Sequence[str],
        limit: float,
    ) -> None:
        self._command = [str(python), "-c", _START, str(ROOT), module]
        self._limit, self._until = limit, 0.0
        self._opening = {
            "variant": variant,
            "trigger": TRIGGER,
            "window": WINDOW,
            "packages": packages,
            "tools": tools,
        }
        self.versions: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="lowwater-bench-")
        self._complaints = Path(self._folder.name) / "stderr"
        with self._complaints.open("wb") as stderr:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._folder.name,
            )
        self._until = monotonic() + self._limit
        try:
            self.versions = self._ask(self._opening, dict[str, dict[str, str]])["versions"]
        except BaseException:
            self._end()
            raise
        return self

    def begin(self, *, trigger: int, keep: int, summary: int) -> None:
        """Begin another session, told where to start, how much of the newest to keep and how long summaries are."""
        self._until = monotonic() + self._limit
        self._ask(
            {**self._opening, "trigger": trigger, "keep": keep, "summary": summary}, dict[str, dict[str, str]]
        )

    def request(self, new: Sequence[dict[str, Any]], reported: tuple[int, int] | None) -> Answer:
        """Return what it would send; `reported` are the tokens of the prompt before and of its answer."""
        usage = {"prompt": reported[0], "output": reported[1]} if reported else None
        return self._ask({"new": new, "reported": usage}, Answer)

    def _ask(self, line: object, answer: type[A]) -> A:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(line) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable(self._last_words()) from None
        left = max(0.0, self._until - monotonic())
        if not select.select([self._process.stdout], [], [], left)[0]:
            self._process.kill()
            raise Unavailable(f"it was stopped: {self._limit:g} seconds were not enough")
        said = self._process.stdout.readline()
        if not said:
            raise Unavailable(self._last_words())
        return msgspec.json.decode(said, type=answer)

    def _last_words(self) -> str:
        """Return why it ended, in one line."""
        self._process.wait()
        words = self._complaints.read_text(errors="replace").strip().rpartition("\n")[2]
        return f"it ended with status {self._process.returncode}: {words[:300]}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()


_START = """
import sys
from importlib import import_module
sys.path.append(sys.argv[1])
import_module(sys.argv[2]).main()
"""
"""This tree comes last on the path: the peer's own modules go before its."""
