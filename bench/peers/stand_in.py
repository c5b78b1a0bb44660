"""The summariser that stands in for a model, the same for every peer and for Lowwater.

It runs inside the environments of the peers, so it needs nothing but Python.
"""

import re
from collections import Counter

SIZE = 9_000
"""Characters of every summary: about 3,000 tokens, as replays take them to be."""
_HEAD = "## Goal\nContinue the work as the user asked.\n\n## Critical Context\n"
_NAME = re.compile(r"[A-Za-z0-9_./:-]{4,80}")
_TELLING = re.compile(r"[0-9_/.]")


class StandIn:
    """Answers with a text of one size that names what the prompt names most often, and remembers what it was asked."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        """Return the summary of a prompt."""
        self._asked.append(prompt)
        return summary_of(prompt, self._size)

    def taken(self) -> list[str]:
        """Return what it was asked since this was called last."""
        asked, self._asked = self._asked, []
        return asked


def summary_of(prompt: str, size: int = SIZE) -> str:
    """Return the summary of a prompt: the same for the same prompt, always of so many characters."""
    found = (match.group().strip(".:-/") for match in _NAME.finditer(prompt))
    named = Counter(name for name in found if len(name) > 3 and _TELLING.search(name))
    lines, left = [_HEAD], size - len(_HEAD)
    for name, _ in named.most_common():
        if len(name) + 3 > left:
            break
        lines.append(f"- {name}\n")
        left -= len(name) + 3
    return "".join(lines) + "." * left
