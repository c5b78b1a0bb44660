"""One message of Gemini CLI: its text, its tool calls with their results, and its token counts."""

from typing import Any

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json
from lowwater.replay.importing.chat_session import Answer, Fields, Result
from lowwater.replay.importing.gathering import text_of


class _Tokens(Struct):
    input: Tokens = None
    output: Tokens = None
    cached: Tokens = None
    thoughts: Tokens = None
    tool: Tokens = None


class _Thought(Struct):
    subject: str | None = None
    description: str | None = None


class _ToolCall(Struct):
    id: str
    name: str = ""
    args: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    status: str | None = None


class Message(Struct):
    """A message as it is written; `content` is text, a part or a list of these."""

    id: str = ""
    type: str = ""
    timestamp: Any = None
    content: Raw = Raw(b'""')
    model: str | None = None
    thoughts: list[_Thought] | None = None
    toolCalls: list[_ToolCall] | None = None  # noqa: N815  # Gemini's spelling, here and below
    tokens: _Tokens | None = None


class _Response(Struct):
    response: Raw = Raw(b"null")


class _Part(Struct):
    text: str | None = None
    functionResponse: _Response | None = None  # noqa: N815


class _Output(Struct):
    output: Raw = Raw(b"")
    error: Raw = Raw(b"")


def answer_of(message: Message, where: int | str, at: float | None) -> Answer:
    """Return an answer with its thoughts, calls, results and counts."""
    text = text_in(message.content)
    calls = message.toolCalls or []
    results = {call.id: _result(call, where, at) for call in calls}
    thoughts = [": ".join(filter(None, (it.subject, it.description))) for it in message.thoughts or []]
    return Answer(
        where=where,
        at=at,
        key=message.id,
        model=message.model or "",
        texts=[text] if text else [],
        thoughts=[thought for thought in thoughts if thought],
        calls=[_call(call) for call in calls],
        results={call: result for call, result in results.items() if result is not None},
        usage=_usage(message.tokens) if message.tokens else None,
    )


def _result(call: _ToolCall, where: int | str, at: float | None) -> Result | None:
    """Return a result, or None before there is one: a message is written again once it has them."""
    if bytes(call.result) in (b"null", b"[]", b""):
        return None
    return Result(content=text_in(call.result), where=where, at=at, is_error=call.status == "error")


def text_in(content: Raw) -> str:
    """Return the text of content: that of its parts, and what functions responded."""
    raw = bytes(content)
    parts = read_json(raw, list[Raw]) if raw[:1] == b"[" else [content]
    return "\n".join(text for part in parts if (text := _text_in_part(part)))


def _text_in_part(content: Raw) -> str:
    match bytes(content)[:1]:
        case b"{":
            part = read_json(bytes(content), _Part)
            return part.text or (_response(part.functionResponse.response) if part.functionResponse else "")
        case b'"':
            return text_of(content)
        case _:
            return ""


def _response(response: Raw) -> str:
    if bytes(response)[:1] != b"{":
        return text_of(response)
    said = read_json(bytes(response), _Output)
    return text_of(next((it for it in (said.output, said.error) if bytes(it)), response))


def _call(call: _ToolCall) -> Fields:
    function = {"name": call.name, "arguments": text_of(call.args)}
    return {"id": call.id, "type": "function", "function": function}


def _usage(tokens: _Tokens) -> Usage | None:
    """Return the counts in parts that do not overlap: the input includes cached ones, the output no thoughts."""
    prompt = tokens.input or 0
    read = min(tokens.cached or 0, prompt)
    usage = Usage(
        uncached=prompt - read + (tokens.tool or 0),
        cache_read=read,
        output=(tokens.output or 0) + (tokens.thoughts or 0),
    )
    return usage if usage.prompt else None
