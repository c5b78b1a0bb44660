"""Which of Anthropic's betas a request needs: they go into its header `anthropic-beta`."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct

from lowwater.errors import BadInput
from lowwater.wire.reading import read_fields, read_json, write_object

ON_DEMAND = "compact-2026-09-04"
"""To ask for a signed compaction block, and to send one back."""
AT_THRESHOLD = "compact-2026-01-12"
"""To send a block back that came in an answer."""
BINDING = "thinking-binding-controls-2026-08-01"
"""To say what becomes of thinking behind a change."""
_SPELLED = b'"compaction"'


class _Block(Struct):
    type: str = ""
    signature: str | None = None


class _Peek(Struct):
    content: str | list[_Block] = ""


class _Thinking(Struct):
    type: str = ""
    block_binding: Any = None


class _Body(Struct):
    messages: list[Raw] = []
    thinking: Raw = Raw(b"")


def betas_for(messages: Sequence[bytes], thinking: bytes = b"") -> tuple[str, ...]:
    """Return the betas that a request with these messages and this `thinking` needs."""
    found = {
        ON_DEMAND if block.signature else AT_THRESHOLD
        for raw in messages
        if _SPELLED in raw
        for block in _blocks(raw)
        if block.type == "compaction"
    }
    if thinking and read_json(thinking, _Thinking).block_binding is not None:
        found.add(BINDING)
    return tuple(sorted(found))


def betas_of_body(body: bytes, *, compacting: bool = False) -> tuple[str, ...]:
    """Return the betas that a whole body needs; `compacting` if it asks for a block. A body in another format needs none."""
    if not compacting and _SPELLED not in body and b'"block_binding"' not in body:
        return ()
    try:
        sent = read_json(body, _Body)
    except BadInput:
        return ()
    found = betas_for([bytes(raw) for raw in sent.messages], bytes(sent.thinking))
    return tuple(sorted({*found, ON_DEMAND})) if compacting else found


def dropping(thinking: bytes) -> bytes:
    """Return a request's `thinking` such that the provider drops what no longer fits; only adaptive thinking can ask that.

    What the client itself says about it is left as it is.
    """
    if not thinking:
        return thinking
    asked = read_json(thinking, _Thinking)
    if asked.type != "adaptive" or asked.block_binding is not None:
        return thinking
    return write_object(
        read_fields(thinking) | {"block_binding": b'{"prefix_mismatch_behavior":"drop_block"}'}
    )


def _blocks(raw: bytes) -> list[_Block]:
    try:
        content = read_json(raw, _Peek).content
    except BadInput:
        return []
    return content if isinstance(content, list) else []
