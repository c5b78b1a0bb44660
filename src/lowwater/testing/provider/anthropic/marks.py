"""Messages rules about cache marks: how many, where, in which order."""

from collections.abc import Iterator

from lowwater.testing.provider.anthropic.body import THINKING, invalid, marks
from lowwater.testing.provider.rule import Incoming, Violation

MOST_MARKS = 4


def mark_shape(incoming: Incoming) -> Iterator[Violation]:
    """A mark is ephemeral and lives five minutes or an hour."""
    for mark in marks(incoming.body):
        if not isinstance(mark.value, dict) or mark.value.get("type") != "ephemeral":
            yield invalid(
                f"{mark.path}: Input tag found using 'type' does not match any of the expected tags: 'ephemeral'"
            )
        elif mark.ttl not in ("5m", "1h"):
            yield invalid(f"{mark.path}.ephemeral.ttl: Input should be '5m' or '1h'")


def at_most_four_marks(incoming: Incoming) -> Iterator[Violation]:
    """Tools, system and messages carry four marks together; a mark on the whole request is one of them."""
    found = len(marks(incoming.body))
    if found > MOST_MARKS:
        yield invalid(f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {found}.")


def no_mark_on_thinking(incoming: Incoming) -> Iterator[Violation]:
    """Thinking cannot carry a mark."""
    for mark in marks(incoming.body):
        kind = mark.holder.get("type")
        if kind in THINKING:
            where = mark.path.removesuffix(".cache_control")
            yield invalid(f"{where}.{kind}.cache_control: Extra inputs are not permitted")


def no_mark_on_empty_text(incoming: Incoming) -> Iterator[Violation]:
    """An empty text block cannot carry a mark."""
    for mark in marks(incoming.body):
        if mark.holder.get("type") == "text" and not mark.holder["text"]:
            where = mark.path.removesuffix(".cache_control")
            yield invalid(f"{where}.text: cache_control cannot be set for empty text blocks")


def long_marks_first(incoming: Incoming) -> Iterator[Violation]:
    """Marks of an hour stand before those of five minutes."""
    short = False
    for mark in marks(incoming.body):
        if mark.ttl == "1h" and short:
            yield invalid(
                f"{mark.path}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
                "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        short = short or mark.ttl == "5m"
