"""The kinds of items, who says them, and which of them are one message.

An answer is several items: reasoning, text, calls. Here they are one message, so that reasoning never parts from what it
led to and parallel calls from each other; every other item is a message of its own.
"""

from collections.abc import Iterator, Sequence

from msgspec import Raw, Struct

from lowwater.errors import BadInput
from lowwater.wire.reading import read_json, write_array

OUTPUT = "_output"
CALL = "_call"

_CLIENTS = frozenset(
    {"mcp_approval_response", "compaction_trigger", "additional_tools", "configuration_update"}
)
"""Items of the client that are neither a message nor a tool's output."""


_OTHERS = frozenset({"message", "reasoning", "item_reference", "compaction", "compaction_summary"})


class Peek(Struct, frozen=True, kw_only=True):
    """What tells an item from others."""

    type: str = "message"
    role: str | None = None
    call_id: str | None = None
    id: str | None = None


def is_known(kind: str) -> bool:
    """Return whether items have this type, as far as is known."""
    return kind in _OTHERS or kind in _CLIENTS or kind.endswith((CALL, CALL + OUTPUT))


def is_output(item: Peek) -> bool:
    """Return whether it is what a tool of the client answered."""
    return item.type.endswith(OUTPUT) and bool(answered_call(item))


def answered_call(item: Peek) -> str:
    """Return the id of the call that an output answers; that of a local shell may stand under another name."""
    return item.call_id or (item.id if item.type == "local_shell_call_output" else "") or ""


def is_of_model(item: Peek) -> bool:
    """Return whether the model said it: its messages, reasoning and calls, and whatever is of an unknown type."""
    if item.type == "message":
        return item.role == "assistant"
    return item.type not in _CLIENTS and not is_output(item)


def joined(raws: Sequence[bytes]) -> list[bytes]:
    """Return one piece of JSON for each message: an item, or the list of those that are one answer.

    An answer of one item is a list, too, so that pieces stay apart whatever is joined with them later.
    """
    found: list[bytes] = []
    run: list[bytes] = []
    for raw in raws:
        if raw.lstrip()[:1] == b"{" and _is_of_model(raw):
            run.append(raw)
            continue
        found.extend(_together(run))
        run = []
        found.append(raw)
    return [*found, *_together(run)]


def items_in(raw: bytes) -> list[bytes]:
    """Return the items of one message, each in the bytes it was written in."""
    return [bytes(item) for item in read_json(raw, list[Raw])] if raw.lstrip()[:1] == b"[" else [raw]


def _together(run: Sequence[bytes]) -> Iterator[bytes]:
    if run:
        yield write_array(list(run))


def _is_of_model(raw: bytes) -> bool:
    try:
        return is_of_model(read_json(raw, Peek))
    except BadInput:
        return False  # whatever is wrong with it, decoding it will say so with its index
