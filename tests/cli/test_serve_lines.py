"""`lowwater serve` speaks to a person on a terminal and to programs in a pipe."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "lowwater", "serve", "--port", "0"]


def read_until(descriptor: int, pattern: str, said: bytes = b"") -> tuple[bytes, re.Match[bytes]]:
    """Read what a gateway writes until it has written something."""
    while (found := re.search(pattern.encode(), said)) is None:
        try:
            piece = os.read(descriptor, 65_536)
        except OSError:  # a terminal whose program has ended
            piece = b""
        if not piece:
            pytest.fail(f"{pattern} was never written: {said!r}")
        said += piece
    return said, found


def test_on_a_terminal_a_request_is_a_line_for_a_person_and_ctrl_c_prints_the_bill(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="needs a POSIX terminal")
    ours, theirs = pty.openpty()
    env = {**os.environ, "LOWWATER_STORE": f"sqlite:///{tmp_path / 's.db'}", "COLUMNS": "120"}
    with subprocess.Popen(
        COMMAND, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env
    ) as gateway:
        os.close(theirs)
        said, found = read_until(ours, r"serving on (http://127\.0\.0\.1:\d+)")
        urllib.request.urlopen(f"{found[1].decode()}/healthz").read()
        said, _ = read_until(ours, r"\d\d:\d\d:\d\d  200  /healthz", said)
        assert b'{"method"' not in said
        gateway.send_signal(signal.SIGINT)
        read_until(ours, "no conversation came through the gateway", said)
    os.close(ours)


def test_in_a_pipe_a_request_is_a_line_of_json(tmp_path: Path) -> None:
    env = {**os.environ, "LOWWATER_STORE": f"sqlite:///{tmp_path / 's.db'}"}
    with subprocess.Popen(COMMAND, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env) as gateway:
        assert gateway.stderr is not None
        url = re.search(r"http://\S+\d", gateway.stderr.readline().decode())
        assert url is not None
        urllib.request.urlopen(f"{url[0]}/healthz").read()
        assert json.loads(gateway.stderr.readline())["path"] == "/healthz"
        gateway.send_signal(signal.SIGINT)
        assert b"conversation" not in gateway.stderr.read()
