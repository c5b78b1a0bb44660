"""A real terminal: tmux with one window, what is typed into it and what it shows."""

import shlex
import shutil
import subprocess
import time
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

PATIENCE = 60.0
"""Seconds until something that was to be seen is missed."""

_LOOKING = Event()
"""Never set: what it is waited for is the time until the next look."""


class Terminal:
    """Runs one command in a tmux of its own, inside a `with` block."""

    def __init__(
        self, command: list[str], *, cwd: Path, env: dict[str, str], columns: int = 100, rows: int = 40
    ) -> None:
        self._socket = f"lowwater-{time.monotonic_ns()}"
        self._command = command
        self._cwd = cwd
        self._env = env
        self._size = (columns, rows)

    @staticmethod
    def is_here() -> bool:
        """Return whether tmux is installed."""
        return shutil.which("tmux") is not None

    def __enter__(self) -> Self:
        columns, rows = self._size
        told = [f"{name}={value}" for name, value in self._env.items()]
        line = shlex.join(["env", "-u", "ANTHROPIC_API_KEY", "-u", "OPENAI_API_KEY", *told, *self._command])
        # What is there after the command has ended is still to be seen.
        line = f"{line}; echo left with $?; cat"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._tmux("kill-server")

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        self.keys(text)
        self.press("Enter")

    def keys(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by the names tmux has for them."""
        self._tmux("send-keys", *keys)

    def shown(self, *, coloured: bool = False, history: int = 0) -> str:
        """Return what is on the screen, and so many lines that have left it."""
        more = ["-S", str(-history)] if history else []
        return self._tmux("capture-pane", "-p", *(["-e"] if coloured else []), *more)

    def wait_for(self, *texts: str, without: str = "", history: int = 0) -> str:
        """Wait until the screen has all these texts, and not another; return it."""
        until = time.monotonic() + PATIENCE
        while True:
            screen = self.shown(history=history)
            if all(text in screen for text in texts) and not (without and without in screen):
                return screen
            if time.monotonic() > until:
                raise AssertionError(f"never seen: {texts}; there is:\n{screen}")
            _LOOKING.wait(0.05)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._socket, *arguments]
        return subprocess.run(command, cwd=self._cwd, capture_output=True, text=True, check=True).stdout
