"""The first difference between what was recorded and what comes out now, for a person to read."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

Tree = Any
_ABSENT = object()
_AROUND = 120


def first_difference(recorded: Tree, now: Tree) -> str:
    """Return where two recordings differ first, with both sides; nothing if they do not.

    A digest is shown as the text it stands for, where that was kept.
    """
    texts = [tree.get("texts", {}) if isinstance(tree, dict) else {} for tree in (recorded, now)]
    for place, before, after in _differences("", recorded, now):
        old, new = _text(before, texts[0]), _text(after, texts[1])
        at = max(0, _first_other(old, new) - _AROUND // 2)
        return (
            f"{place}, from character {at}\n  recorded: {_excerpt(old, at)}\n  now:      {_excerpt(new, at)}"
        )
    return ""


def _differences(place: str, before: Tree, after: Tree) -> Iterator[tuple[str, Tree, Tree]]:
    """Yield what differs, in the order in which it was recorded."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            if place or key != "texts":
                yield from _differences(
                    f"{place} › {key}" if place else key, before.get(key, _ABSENT), after.get(key, _ABSENT)
                )
    elif isinstance(before, list) and isinstance(after, list):
        for number, (old, new) in enumerate(zip_longest(before, after, fillvalue=_ABSENT), start=1):
            yield from _differences(f"{place} › {number}", old, new)
    elif before is _ABSENT or after is _ABSENT or before != after:
        yield place, before, after


def _text(value: Tree, texts: dict[str, str]) -> str:
    if value is _ABSENT:
        return "(nothing)"
    return texts.get(value, value) if isinstance(value, str) else str(value)


def _first_other(old: str, new: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )


def _excerpt(text: str, at: int) -> str:
    return text[at : at + _AROUND].replace("\n", "\\n")
