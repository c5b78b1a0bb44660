"""Making a list of messages legal, and refusing what cannot be (SPEC C4)."""

from collections.abc import Sequence

from lowwater.errors import IllegalView
from lowwater.values.groups import unpaired
from lowwater.values.message import Message
from lowwater.values.parts import AnyPart, Text, ToolResult

STUB = "[no result was recorded for this call]"


def mend(messages: Sequence[Message]) -> list[Message]:
    """Drop results without a call and answer calls without a result by a stub; paired messages pass untouched."""
    broken = unpaired(messages)
    if not broken.calls and not broken.results:
        return list(messages)
    orphans = {(index, call_id) for index, call_id in broken.results}
    open_calls: dict[int, list[str]] = {}
    for index, call_id in broken.calls:
        open_calls.setdefault(index, []).append(call_id)
    mended: list[Message] = []
    for index, message in enumerate(messages):
        kept = _without_orphans(message, index, orphans)
        if kept is not None:
            mended.append(kept)
        if index in open_calls:
            mended.append(_stubs(message, open_calls[index]))
    return mended


def refuse_illegal(messages: Sequence[Message]) -> None:
    """Raise IllegalView unless every call has its result right behind it and every result its call before it."""
    broken = unpaired(messages)
    if broken.results:
        index, call_id = broken.results[0]
        raise IllegalView(
            f"message {index} of the view answers call {call_id!r}, which does not come before it"
        )
    if broken.calls:
        index, call_id = broken.calls[0]
        raise IllegalView(f"message {index} of the view calls {call_id!r}, which is never answered")
    if not messages:
        raise IllegalView("the view is empty: append a message first")
    if all(message.role in {"system", "developer"} for message in messages):
        raise IllegalView("the view holds only instructions: append a user message first")


def _without_orphans(message: Message, index: int, orphans: set[tuple[int, str]]) -> Message | None:
    if not any((index, result.call_id) in orphans for result in message.results):
        return message
    parts: list[AnyPart] = [
        part
        for part in message.parts
        if not isinstance(part, ToolResult) or (index, part.call_id) not in orphans
    ]
    return message.with_parts(parts) if parts else None


def _stubs(message: Message, call_ids: Sequence[str]) -> Message:
    """Return the answer to open calls, in the form the conversation's format gives results."""
    anthropic = message.wire is not None and message.wire.format == "anthropic"
    parts = tuple(
        ToolResult(call_id=call_id, parts=(Text(text=STUB),), is_error=True) for call_id in call_ids
    )
    return Message(role="user" if anthropic else "tool", parts=parts)
