"""Hermes' compressor as a process beside this one, asked one compression at a time."""

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct

from bench.peers.environment import python_with

REQUIREMENT = "hermes-agent==0.19.0"
WORKER = Path(__file__).with_name("hermes_worker.py")


class Compressed(Struct, frozen=True, kw_only=True):
    """What one compression took, in CPU time of its process, and what it left."""

    seconds: float
    messages: list[dict[str, Any]]
    tail: int
    summarised: bool


class Hermes:
    """Compresses one list of messages again and again, inside a `with` block."""

    def __init__(self, messages: list[dict[str, Any]], *, context: int, summary: str) -> None:
        self._given = {"messages": messages, "context": context, "summary": summary}

    def __enter__(self) -> Self:
        python = python_with("hermes", REQUIREMENT)
        self._folder = tempfile.TemporaryDirectory(prefix="lowwater-bench-")
        given = Path(self._folder.name) / "given.json"
        given.write_text(json.dumps(self._given))
        self._process = subprocess.Popen(
            [python, WORKER, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self._folder.name
        )
        return self

    def compress(self) -> Compressed:
        """Let it compress once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        answer = msgspec.json.decode(self._process.stdout.readline(), type=Compressed)
        assert answer.summarised, "Hermes did without the summary"
        return answer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate()
        self._folder.cleanup()
