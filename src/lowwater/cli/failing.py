"""How a command fails: one sentence on standard error and an exit code, never a traceback."""

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from lowwater.errors import LowwaterError, defect

OK = 0
FAILED = 1
DEFECT = 70
INTERRUPTED = 130


def say(text: str) -> None:
    """Tell the user one thing on standard error, on one line."""
    sys.stderr.write(f"lowwater: {' '.join(text.split())}\n")


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Give a list that Ctrl-C adds to, beside the KeyboardInterrupt that it raises.

    An exception that is raised inside a finalizer or a callback of an extension module is lost, and one that cleaning
    up raises takes its place: the list tells all the same.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def run(command: Callable[[], object]) -> int:
    """Run `command` and return the process's exit code; whatever goes wrong becomes one sentence."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _exit_code(command)
        sys.stdout.flush()
    except LowwaterError as error:
        say(str(error))
        return FAILED
    except BrokenPipeError:
        _forget_stdout()
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost handler: nobody is left to handle it
        return _defect(error)
    return code


def _exit_code(command: Callable[[], object]) -> int:
    try:
        command()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else OK if leaving.code is None else FAILED
    return OK


def _forget_stdout() -> None:
    # The reader has gone: what is still buffered must not be written when the interpreter exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _defect(error: Exception) -> int:
    if os.environ.get("LOWWATER_DEBUG"):
        traceback.print_exception(error)
    say(f"{defect(error)}; please report it with the traceback that LOWWATER_DEBUG=1 shows")
    return DEFECT
