"""Hermes' session store as a process beside this one, asked one step at a time."""

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec import Struct

from bench.peers.environment import python_with
from bench.peers.hermes import REQUIREMENT
from bench.peers.took import Took

WORKER = Path(__file__).with_name("hermes_store_worker.py")
A = TypeVar("A")


class Settled(Struct, frozen=True, kw_only=True):
    """How its connection is set, and whether it has its second index."""

    pragmas: dict[str, str | int]
    trigram: bool


class Found(Struct, frozen=True, kw_only=True):
    """How many messages a search found, and how many there are."""

    found: int
    messages: int


class HermesStore:
    """Puts one list of messages into new stores, inside a `with` block."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self._messages = messages

    def __enter__(self) -> Self:
        python = python_with("hermes", REQUIREMENT)
        self._folder = tempfile.TemporaryDirectory(prefix="lowwater-bench-")
        given = Path(self._folder.name) / "given.json"
        given.write_text(json.dumps(self._messages))
        self._process = subprocess.Popen(
            [python, WORKER, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self._folder.name
        )
        return self

    def open(self, path: Path, sync: str = "") -> Settled:
        """Make a new store with one session; its commits are as sure as Hermes has them unless `sync` says otherwise."""
        return self._ask(Settled, "open", str(path), sync)

    def append(self, start: int, end: int) -> Took:
        """Append these messages, each in a transaction."""
        return self._ask(Took, "append", start, end)

    def replace(self) -> Took:
        """Write all messages in one transaction."""
        return self._ask(Took, "replace")

    def find(self, words: str) -> Found:
        """Search for words."""
        return self._ask(Found, "find", words)

    def close(self) -> Took:
        """Close the store that is open."""
        return self._ask(Took, "close")

    def _ask(self, answer: type[A], *line: str | int) -> A:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(line) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=answer)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()
        self._folder.cleanup()
