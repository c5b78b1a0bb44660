"""A difference between two views, coloured for a terminal, and for programs."""

from collections.abc import Iterator

from rich.padding import Padding
from rich.text import Text

from lowwater.cli.kept_words import printable
from lowwater.core.accounts.difference import Difference, words_of

_KINDS = {
    "edited": "yellow",
    "summarised": "magenta",
    "restored": "cyan",
    "appended": "green",
    "dropped": "red",
    "model": "blue",
    "preamble": "blue",
}
_UNDER = " " * 6
"""How lines begin that show what changed inside a message."""
_SIGNS = {"+": "green", "-": "red", "@": "cyan"}


def difference_lines(difference: Difference, *, full: bool = False) -> Iterator[Text | Padding]:
    """Yield a difference line by line; `full` with what changed inside messages."""
    for number, line in enumerate(printable(words_of(difference, full=full)).splitlines()):
        if line.startswith(_UNDER):
            inside = line.removeprefix(_UNDER)
            style = _SIGNS.get(inside[:1], "bright_black")
            yield Padding(Text(inside, style=style), (0, 0, 0, len(_UNDER)))
        else:
            yield Text(line, style=_style(line) if number else "bold")


def difference_said(difference: Difference, *, full: bool) -> dict[str, object]:
    """Return a difference for programs; texts of what changed only where `full` is wanted."""
    return {
        "before": difference.before,
        "after": difference.after,
        "is_empty": difference.is_empty,
        "models": difference.models,
        "preamble": difference.preamble,
        "changes": [
            {
                "kind": change.kind,
                "numbers": change.numbers,
                "messages": change.messages,
                "before": change.before,
                "after": change.after,
                **({"parts": change.parts} if full else {}),
            }
            for change in difference.changes
        ],
    }


def _style(line: str) -> str:
    words = line.split(maxsplit=1)
    return _KINDS.get(words[0] if words else "", "bright_black")
