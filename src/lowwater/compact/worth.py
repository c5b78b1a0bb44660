"""How likely a tool result is to be used again, by what it is and how old.

Measured on recorded sessions (ECONOMICS, "Losing information has a price too"): it depends on the kind of tool far more
than on age.
"""

from lowwater.values.tools import ToolClass

_AFTER_FIVE_CALLS: dict[ToolClass, float] = {
    "write": 0.01,
    "todo": 0.02,
    "shell": 0.12,
    "list": 0.12,
    "search": 0.17,
    "web": 0.25,
    "read": 0.39,
    "agent": 0.50,
}
_OTHER = 0.15
_SUPERSEDED = 0.02
_AGES = ((5, 1.0), (20, 0.70), (80, 0.40))


def chance_of_use(tool: ToolClass, calls_ago: int, *, superseded: bool = False) -> float:
    """Return the chance that a result is used again, given its tool, its age in calls, and whether a later one replaces it."""
    if superseded:
        return _SUPERSEDED
    fade = next((factor for most, factor in _AGES if calls_ago <= most), 0.25)
    return _AFTER_FIVE_CALLS.get(tool, _OTHER) * fade
