"""Servers under measurement, each a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

_PATIENCE = 120.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Running(Struct, frozen=True, kw_only=True):
    """A server that listens."""

    url: str
    pid: int

    def memory(self) -> int:
        """Return the bytes it and its children hold in memory."""
        return sum(_resident(pid) for pid in _family(self.pid))


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str], port: int, *, env: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[Running]:
    """Run a server until the block ends; it is handed out as soon as it listens."""
    out = subprocess.DEVNULL if log is None else log.open("wb")
    process = subprocess.Popen(
        list(command), env={**os.environ, **(env or {})}, stdout=out, stderr=subprocess.STDOUT
    )
    try:
        _wait(process, port)
        yield Running(url=f"http://127.0.0.1:{port}", pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ours(module: str, port: int, *arguments: str) -> list[str]:
    """Return the command of a server that is a module of ours."""
    return [sys.executable, "-m", module, "--port", str(port), *arguments]


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode} before it listened")
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} did not listen within {_PATIENCE:.0f} seconds")


def _family(pid: int) -> list[int]:
    found = [pid]
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        for each in child.read_text().split():
            found += _family(int(each))
    return found


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0
