"""Everything that is frozen about what is stored, as lines: `python -m tests.stores.stored_list` writes `stored.txt` beside it.

Classes and attributes have no part in it: a stored object is told by where it lies, its tag and the names in it.
"""

from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from lowwater.core.decisions import CODES
from lowwater.core.entries import Entry, ViewItem
from lowwater.core.events import Event, TurnRecord
from lowwater.core.limits import LEVELS
from lowwater.core.mechanisms import native
from lowwater.core.mechanisms.registry import MECHANISMS
from lowwater.core.messages import Message
from lowwater.core.policies.registry import POLICIES
from lowwater.core.stored import About
from lowwater.core.stored_form import FORM, FORMER_POLICIES
from lowwater.core.summary.request import VerdictCode
from lowwater.core.turns import arrival, pins, state_storage, summaries
from lowwater.core.turns.effects import FailureKind
from lowwater.stores.serialization import StoredEntry
from lowwater.stores.shared import EVENT_COLUMNS, TURN_COLUMNS

PLACE = Path(__file__).with_name("stored.txt")

ROOTS: dict[str, Any] = {
    "message": Message,
    "stand": ViewItem,
    "entry": StoredEntry,
    "turn record": TurnRecord,
    "event": Event,
    "about": About,
    "state": state_storage._Carried,
    "exported entry": Entry,
}
"""Whatever is encoded by itself, by what it is called here."""

WORDS: dict[str, tuple[str, ...]] = {
    "mechanisms": (
        *MECHANISMS,
        native.AS_TEXT,
        arrival.REPEAT,
        pins.PINS,
    ),
    "reason codes": CODES,
    "verdict codes": get_args(VerdictCode),
    "failure codes": get_args(FailureKind),
    "summarizers": (summaries.EXTRACTIVE, summaries.MARKER),
    "policies": (*(policy.name for policy in POLICIES), *FORMER_POLICIES),
    "warning levels": LEVELS,
    "turn columns": TURN_COLUMNS,
    "event columns": EVENT_COLUMNS,
}
"""Words that stored texts consist of."""


def stored_list() -> str:
    """Return all lines."""
    lines = [f"form {FORM}"]
    told: dict[type[Struct], str] = {}
    for name, root in ROOTS.items():
        lines += ["", *_objects(name, root, told)]
    for name, words in WORDS.items():
        lines += ["", name, *(f"  {word}" for word in sorted(words))]
    return "\n".join(lines) + "\n"


def stored_classes() -> set[type[Struct]]:
    """Return every class that is encoded."""
    found: set[type[Struct]] = set()
    for root in ROOTS.values():
        _gather(root, found)
    return found


def _gather(kind: Any, found: set[type[Struct]]) -> None:
    for struct in _structs(kind):
        if struct not in found:
            found.add(struct)
            for field in fields(struct):
                _gather(field.type, found)


def _objects(place: str, kind: Any, told: dict[type[Struct], str]) -> Iterator[str]:
    """Yield the objects of a kind, and behind each those that lie in it; what was told before is only named."""
    for struct in _structs(kind):
        config = struct.__struct_config__
        tag = f" {config.tag_field}={config.tag}" if config.tag is not None else ""
        inside = f"{place}{tag}"
        if struct in told:
            yield f"{inside}: as {told[struct]}"
            continue
        told[struct] = inside
        yield f"{inside} (array)" if config.array_like else inside
        for field in fields(struct):
            missing = "" if field.required else " (may be missing)"
            yield f"  {field.encode_name}: {_type(field.type)}{missing}"
        for field in fields(struct):
            yield from _objects(f"{inside}.{field.encode_name}", field.type, told)


def _structs(kind: Any) -> Iterator[type[Struct]]:
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield kind
    elif get_origin(kind) is not Literal:
        for part in get_args(kind):
            yield from _structs(part)


def _type(kind: Any) -> str:
    """Return a type without the names of classes."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "object"
    if kind is NoneType or kind is None:
        return "null"
    if kind is Ellipsis:
        return "..."
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "|".join(sorted(map(repr, inside)))
    if not inside:
        return str(kind.__name__)
    if origin in (tuple, list, dict, set, frozenset):
        return f"{origin.__name__}[{', '.join(map(_type, inside))}]"
    return "|".join(sorted(set(map(_type, inside))))


if __name__ == "__main__":
    PLACE.write_text(stored_list())
