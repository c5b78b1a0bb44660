"""What is typed while an answer comes: kept for the next line, and not shown in the middle of the answer."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

try:
    import termios
except ImportError:  # no such thing as a terminal's settings on this system
    termios = None  # type: ignore[assignment]


@contextmanager
def unseen_keys(*, unseen: bool = True) -> Iterator[None]:
    """Do not let the terminal show what is typed meanwhile; or, inside of that, let it again."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    meanwhile = list(before)
    meanwhile[3] = before[3] & ~termios.ECHO if unseen else before[3] | termios.ECHO
    termios.tcsetattr(keyboard, termios.TCSADRAIN, meanwhile)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def asked(question: str) -> str:
    """Put a question to whoever sits at the terminal and return the line that is typed; what was typed before is not an answer."""
    with unseen_keys(unseen=False):
        if termios is not None:
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        try:
            return input(question)
        except EOFError:
            return ""
