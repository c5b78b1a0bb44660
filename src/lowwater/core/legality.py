"""Making a list of messages legal for a provider, and refusing what cannot be.

Both providers want every result right behind the message that calls for it, and one result for every call.
"""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.messages import AnyPart, Format, Message, Text, ToolCall, ToolResult, block_in
from lowwater.errors import IllegalView

STUB = "[no result was recorded for this call]"
LEFT_OUT = "[a tool result without its call stood here]"
BEGINS = "[the conversation begins with the assistant's message]"
"""What a user says first where Anthropic would refuse a list: there the user begins, whoever began here."""


class _Broken(Struct, frozen=True, kw_only=True):
    """What is out of place in a list of messages."""

    misplaced: dict[int, list[int]]
    """Results that do not stand right behind their call, by message and part."""
    behind: dict[int, list[ToolResult]]
    """What has to stand behind a message that calls for it and does not: results found later, and stubs."""
    twice: int | None
    """The first message that uses the id of a call twice; None if none does."""


def made_legal(messages: Sequence[Message]) -> list[Message]:
    """Return the messages mended where they have to be, or raise IllegalView."""
    broken = _find_broken(messages)
    if broken.misplaced or broken.behind:
        mended = _mended(messages, broken)
        refuse_illegal(mended)
        return mended
    _refuse_hopeless(messages, broken)
    return list(messages)


def mend(messages: Sequence[Message]) -> list[Message]:
    """Drop results without a call, bring late ones to their call, answer the other calls by a stub.

    Messages that are in order pass untouched.
    """
    return _mended(messages, _find_broken(messages))


def _mended(messages: Sequence[Message], broken: _Broken) -> list[Message]:
    mended: list[Message] = []
    missing: list[ToolResult] = []
    in_users, gone = _format_of(messages) == "anthropic", False
    for index, message in enumerate(messages):
        kept = _without(message, broken.misplaced.get(index, ()))
        if missing and kept is not None and kept.role == "user" and (kept.results or in_users):
            kept, missing = kept.with_parts((*missing, *kept.parts)), []
        if missing:
            mended.append(_answer(missing, messages))
        if kept is None:
            gone = True
        else:
            if gone and mended:
                kept = _apart(mended, kept)
            mended.append(kept)
            gone = False
        missing = broken.behind.get(index, [])
    return [*mended, _answer(missing, messages)] if missing else mended


def _apart(mended: list[Message], message: Message) -> Message:
    """Return a message that follows one only since what was between them is gone, so that no two of one role do.

    Two of the user's become one; between two of the assistant's the user says what is missing.
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


def begun_by_user(messages: Sequence[Message]) -> list[Message]:
    """Return the messages as Anthropic takes them: the user begins, or a compaction block of the provider's own does."""
    first = messages[0] if messages else None
    if first is None or first.role != "assistant" or block_in(first):
        return list(messages)
    return [Message(role="user", parts=(Text(text=BEGINS),)), *messages]


def refuse_illegal(messages: Sequence[Message]) -> None:
    """Raise IllegalView unless there is something to answer and every call and result stands where it must."""
    broken = _find_broken(messages)
    _refuse_hopeless(messages, broken)
    for index, at in broken.misplaced.items():
        result = messages[index].parts[at[0]]
        assert isinstance(result, ToolResult)
        raise IllegalView(
            f"message {index} of the view answers call {result.call_id!r}, which no message right before it makes"
        )
    for index, answers in broken.behind.items():
        raise IllegalView(
            f"message {index} of the view calls {answers[0].call_id!r}, which is not answered right behind it"
        )


def _refuse_hopeless(messages: Sequence[Message], broken: _Broken) -> None:
    """Raise IllegalView for what no mending helps."""
    if all(message.role in {"system", "developer"} for message in messages):
        what = "holds only instructions" if messages else "is empty"
        raise IllegalView(f"the view {what}: append a user message first")
    if broken.twice is not None:
        raise IllegalView(
            f"message {broken.twice} of the view uses the id of a call twice: give each call its own"
        )


def _find_broken(messages: Sequence[Message]) -> _Broken:
    misplaced: dict[int, list[int]] = {}
    behind: dict[int, list[ToolResult]] = {}
    calling: dict[str, int] = {}
    group, twice = -1, None
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
                    behind.setdefault(caller, []).append(part)
            elif isinstance(part, ToolCall):
                calls.append(part)
        group = group if answers and message.role != "assistant" else -1
        if twice is None and len(calls) > 1 and len({call.id for call in calls}) < len(calls):
            twice = index
        for call in calls:
            if call.id in calling:
                behind.setdefault(calling[call.id], []).append(_stub(call.id))
            calling[call.id] = group = index
    for call_id, index in calling.items():
        behind.setdefault(index, []).append(_stub(call_id))
    return _Broken(misplaced=misplaced, behind=behind, twice=twice)


def _stub(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=STUB),), is_error=True)


def _without(message: Message, misplaced: Sequence[int]) -> Message | None:
    """Return the message without some of its parts; None if that leaves nothing of it."""
    if not misplaced:
        return message
    parts: list[AnyPart] = [part for at, part in enumerate(message.parts) if at not in misplaced]
    return message.with_parts(parts) if parts else None


def _answer(results: Sequence[ToolResult], messages: Sequence[Message]) -> Message:
    """Return results as a message of the conversation's format."""
    return Message(role="user" if _format_of(messages) == "anthropic" else "tool", parts=tuple(results))


def _format_of(messages: Sequence[Message]) -> Format | None:
    return next((message.wire.format for message in messages if message.wire is not None), None)
