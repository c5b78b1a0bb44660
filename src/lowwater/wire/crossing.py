"""What a part becomes when it crosses from one provider's format into another's."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.errors import BadInput
from lowwater.values.native_block import read_block
from lowwater.values.parts import AnyPart, Opaque, ResultPart, Text, ToolResult
from lowwater.wire.reading import read_json


class _Refusal(Struct):
    refusal: str = ""


def _refused(part: Opaque) -> str:
    """Return the words of a refusal; nothing if it does not say any."""
    try:
        return read_json(part.body.encode(), _Refusal).refusal
    except BadInput:
        return ""


def _compacted(part: Opaque) -> str:
    """Return what a provider's own compaction block says: another provider cannot read it, but its words can be."""
    block = read_block(part)
    return "" if block is None else block.content or ""


def crossed(part: AnyPart) -> AnyPart:
    """Return the part without what only its own format understands; a block of unknown type becomes a note that says so."""
    if isinstance(part, ToolResult):
        inner = tuple(_crossed_inside(each) for each in part.parts)
        return replace(part, parts=inner, extra=b"")
    return _crossed_inside(part) if isinstance(part, Opaque | Text) else replace(part, extra=b"")


def _crossed_inside(part: ResultPart) -> ResultPart:
    if not isinstance(part, Opaque):
        return replace(part, extra=b"")
    said = _refused(part) if part.block == "refusal" else _compacted(part)
    return Text(text=said or f"[{part.block}: left out, it has no form in this provider's format]")
