"""Repairing a list of messages so that providers accept it, and rejecting what cannot be repaired.

Anthropic and OpenAI both require one result for every tool call, directly after the message that makes the call.
"""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.messages import (
    AnyPart,
    Message,
    Text,
    ToolCall,
    ToolResult,
    block_in,
    format_of,
    repeats_call_ids,
    with_unique_call_ids,
)
from lowwater.errors import IllegalView

STUB = "[no result was recorded for this call]"
LEFT_OUT = "[a tool result without its call stood here]"
BEGINS = "[the conversation begins with the assistant's message]"
"""The first user message of a list that the assistant begins: Anthropic rejects a list that no user message begins."""


class _Broken(Struct, frozen=True, kw_only=True):
    """What is wrong with the calls and results in a list of messages."""

    misplaced: dict[int, list[int]]
    """The results that do not directly follow their call: part indexes by message index."""
    missing: dict[int, list[ToolResult]]
    """The results that have to be inserted after a message with calls: those found later in the list, and stubs."""


def made_legal(messages: Sequence[Message]) -> list[Message]:
    """Return the messages, repaired if necessary, or raise IllegalView if that does not help."""
    messages = with_unique_call_ids(messages)
    broken = _find_broken(messages)
    if broken.misplaced or broken.missing:
        mended = _mended(messages, broken)
        refuse_illegal(mended)
        return mended
    _refuse_without_ask(messages)
    return messages


def mend(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without results that have no call, with late results moved to their call, and stubs for missing ones.

    A call whose id an earlier call has gets a new id, and so does its result. Messages that are in order are not changed.
    """
    messages = with_unique_call_ids(messages)
    return _mended(messages, _find_broken(messages))


def _mended(messages: Sequence[Message], broken: _Broken) -> list[Message]:
    mended: list[Message] = []
    pending: list[ToolResult] = []
    # Anthropic takes results as parts of a user message, the OpenAI formats as messages of their own.
    in_users, dropped = format_of(messages) == "anthropic", False
    for index, message in enumerate(messages):
        kept = _without(message, broken.misplaced.get(index, ()))
        if pending and kept is not None and kept.role == "user" and (kept.results or in_users):
            kept, pending = kept.with_parts((*pending, *kept.parts)), []
        if pending:
            mended.append(_answer(pending, messages))
        if kept is None:
            dropped = True
        else:
            if dropped and mended:
                kept = _separate(mended, kept)
            mended.append(kept)
            dropped = False
        pending = broken.missing.get(index, [])
    return [*mended, _answer(pending, messages)] if pending else mended


def _separate(mended: list[Message], message: Message) -> Message:
    """Return a message so that it does not follow one of the same role after what was between them was dropped.

    Two user messages are joined; between two assistant messages goes a user message that says what is missing.
    """
    before = mended[-1]
    if before.role != message.role:
        return message
    if message.role == "assistant":
        mended.append(Message(role="user", parts=(Text(text=LEFT_OUT),)))
    elif message.role == "user" and not message.results:
        mended.pop()
        return message.with_parts((*before.parts, *message.parts))
    return message


def begin_with_user(messages: Sequence[Message]) -> list[Message]:
    """Return the messages as Anthropic accepts them: beginning with a user message or the provider's own compaction block."""
    first = messages[0] if messages else None
    if first is None or first.role != "assistant" or block_in(first):
        return list(messages)
    return [Message(role="user", parts=(Text(text=BEGINS),)), *messages]


def refuse_illegal(messages: Sequence[Message]) -> None:
    """Raise IllegalView unless there is something to answer, and each call has its own id and its result directly after it."""
    _refuse_without_ask(messages)
    if repeats_call_ids(messages):
        raise IllegalView("two calls of the view have the same id: give each call an id of its own")
    broken = _find_broken(messages)
    for index, at in broken.misplaced.items():
        result = messages[index].parts[at[0]]
        assert isinstance(result, ToolResult)
        raise IllegalView(
            f"message {index} of the view has a result for call {result.call_id!r}, which the message before it does not make"
        )
    for index, answers in broken.missing.items():
        raise IllegalView(
            f"message {index} of the view makes call {answers[0].call_id!r}, whose result does not directly follow"
        )


def _refuse_without_ask(messages: Sequence[Message]) -> None:
    """Raise IllegalView if there is nothing to answer, which cannot be repaired."""
    if all(message.role in {"system", "developer"} for message in messages):
        what = "holds only instructions" if messages else "is empty"
        raise IllegalView(f"the view {what}: append a user message first")


def _find_broken(messages: Sequence[Message]) -> _Broken:
    misplaced: dict[int, list[int]] = {}
    missing: dict[int, list[ToolResult]] = {}
    calling: dict[str, int] = {}
    group = -1
    for index, message in enumerate(messages):
        answers = False
        calls: list[ToolCall] = []
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                answers = True
                caller = calling.pop(part.call_id, None)
                if caller is None or caller != group:
                    misplaced.setdefault(index, []).append(at)
                if caller is not None and caller != group:
                    missing.setdefault(caller, []).append(part)
            elif isinstance(part, ToolCall):
                calls.append(part)
        group = group if answers and message.role != "assistant" else -1
        for call in calls:
            if call.id in calling:
                missing.setdefault(calling[call.id], []).append(_stub(call.id))
            calling[call.id] = group = index
    for call_id, index in calling.items():
        missing.setdefault(index, []).append(_stub(call_id))
    return _Broken(misplaced=misplaced, missing=missing)


def _stub(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=STUB),), is_error=True)


def _without(message: Message, misplaced: Sequence[int]) -> Message | None:
    """Return the message without some of its parts; None if that leaves nothing of it."""
    if not misplaced:
        return message
    gone = frozenset(misplaced)
    parts: list[AnyPart] = [part for at, part in enumerate(message.parts) if at not in gone]
    return message.with_parts(parts) if parts else None


def _answer(results: Sequence[ToolResult], messages: Sequence[Message]) -> Message:
    """Return results as a message in the conversation's format."""
    return Message(role="user" if format_of(messages) == "anthropic" else "tool", parts=tuple(results))
