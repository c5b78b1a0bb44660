"""How likely a tool result is to be used again, and what keeping it is worth.

Measured on 24,754 results of recorded sessions (`python -m bench.chances`): the kind of tool decides far more than age,
and a long result is used again more often than a short one, though not in proportion. Reads are fitted to files that
were not changed since: the others are made stale by `dedupe`.
"""

from math import exp, sqrt

from lowwater.values.tools import ToolClass

_USES: dict[ToolClass, float] = {
    "write": 0.001,
    "todo": 0.001,
    "shell": 0.025,
    "list": 0.06,
    "search": 0.06,
    "web": 0.08,
    "read": 0.09,
    "agent": 0.16,
}
"""Uses to expect of the first 1,000 characters once a result is five calls old."""
_OTHER = 0.06
_LENGTH = 0.75
"""The power of the length that uses grow with."""
_YOUNG = 5
_RECALL = 10_000
"""What one recall costs beside the content, in tokens: a call more over a warm prefix of some 100,000."""


def chance_of_use(tool: ToolClass, chars: int, calls_ago: int) -> float:
    """Return the chance that a result is used again, given its tool, its length, and how many calls came after it."""
    fade = sqrt(_YOUNG / max(_YOUNG, calls_ago))
    return 1 - exp(-_USES.get(tool, _OTHER) * (chars / 1_000) ** _LENGTH * fade)


def worth_per_token(tool: ToolClass, chars: int, tokens: int, calls_ago: int) -> float:
    """Return the tokens of rework that each token of a kept result can be expected to spare."""
    return chance_of_use(tool, chars, calls_ago) * (_RECALL + tokens) / max(tokens, 1)
