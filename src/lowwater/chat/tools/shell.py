"""The tool `shell`: a command in the working directory, within a time, without the keys of this program."""

import os
import signal
import subprocess
import tempfile
from functools import partial
from typing import IO

from lowwater.chat.tools.place import Place
from lowwater.chat.tools.tool import Arguments, Tool, number_of, text_of

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
"""What a command does not inherit: a model that prints its environment must not read them."""
_SECONDS = 120
_MOST_SECONDS = 600
_MOST_BYTES = 400_000
"""How much of an output is kept: its beginning and its end."""


def shell(place: Place, *, withheld: tuple[str, ...] = ()) -> Tool:
    """Return the tool that runs a command; the user is asked before, each time."""
    return Tool(
        name="shell",
        description="Run a command in the user's shell, in the working directory; returns its exit code and all its "
        "output. It gets no input. The user is asked before it runs.",
        parameters={
            "command": {"type": "string", "description": "The command line."},
            "timeout": {
                "type": "integer",
                "minimum": 1,
                "description": f"Seconds after which it is stopped; {_SECONDS} if left out, at most {_MOST_SECONDS}.",
            },
        },
        required=("command",),
        run=partial(_run, place, frozenset((*KEYS, *withheld))),
        question=lambda arguments: f"run: {text_of(arguments, 'command')}",
    )


def _run(place: Place, withheld: frozenset[str], arguments: Arguments) -> str:
    command = text_of(arguments, "command")
    seconds = number_of(arguments, "timeout", _SECONDS, most=_MOST_SECONDS)
    environment = {name: value for name, value in os.environ.items() if name not in withheld}
    with tempfile.TemporaryFile() as output:
        running = subprocess.Popen(  # noqa: S602  # a shell is what the user was asked for
            command,
            shell=True,
            cwd=place.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ended = f"exit code {running.wait(timeout=seconds)}"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {seconds} s"
        finally:
            _stop(running)
        return f"[{ended}]\n{_said(output)}"


def _stop(running: "subprocess.Popen[bytes]") -> None:
    """End a command that is still running, and all it started; what one that ended left in the background stays."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _said(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(0)
    if size <= _MOST_BYTES:
        return output.read().decode("utf-8", "replace")
    head = output.read(_MOST_BYTES // 2)
    output.seek(-(_MOST_BYTES // 2), os.SEEK_END)
    left_out = f"\n[{size - _MOST_BYTES:,} bytes left out]\n"
    return head.decode("utf-8", "replace") + left_out + output.read().decode("utf-8", "replace")
