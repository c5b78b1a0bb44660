"""Recall for clients that know nothing of it: tools added to their requests, and their calls answered here."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.formats.convert import tools_as
from lowwater.core.messages import Format
from lowwater.core.recall.recalled import anthropic_tools, is_recall, offers_recall, openai_tools
from lowwater.core.strict_json import read_plain, write_json, write_object
from lowwater.gateway.asked import Asked
from lowwater.summarizers.requests import with_items

MOST_ROUNDS = 6
"""How often a model may recall in a row before it has to answer with what it has."""

_AUTO = frozenset({b"", b"null", b'"auto"'})
_ONE_ANSWER = frozenset({b"1", b"null"})


class RecallCall(Struct, frozen=True, kw_only=True):
    """A call of a recall tool."""

    id: str
    name: str
    arguments: str


def _tools() -> MappingProxyType[Format, bytes]:
    anthropic = write_json(anthropic_tools())
    chat = write_json(openai_tools())
    return MappingProxyType(
        {
            "anthropic": anthropic,
            "openai_chat": chat,
            "openai_responses": tools_as(chat, "openai_responses"),
        }
    )


def with_recall(asked: Asked) -> Asked:
    """Return the request with the recall tools behind the client's own; one without tools, or that forces one or wants several answers, stays as it is."""
    tools, choice = asked.tools, asked.fields.get("tool_choice", b"")
    several = asked.fields.get("n", b"1") not in _ONE_ANSWER
    if len(tools) < len(b"[{}]") or offers_recall(tools) or several or not _is_free(choice):
        return asked
    added = tools.rstrip()[:-1] + b"," + _tools()[asked.format][1:]
    fields = asked.fields | {"tools": added}
    return replace(asked, fields=fields, body=write_object(fields))


def calls_in(answer: bytes, format: Format) -> list[RecallCall]:
    """Return the calls of recall tools in a whole answer."""
    told: dict[str, Any] = read_plain(answer)
    match format:
        case "anthropic":
            return [
                RecallCall(id=block["id"], name=block["name"], arguments=write_json(block["input"]).decode())
                for block in told["content"]
                if block.get("type") == "tool_use" and is_recall(block["name"])
            ]
        case "openai_chat":
            calls = told["choices"][0]["message"].get("tool_calls") or ()
            functions = [(call["id"], call.get("function") or {}) for call in calls]
            return [
                RecallCall(id=id, name=function["name"], arguments=function.get("arguments") or "{}")
                for id, function in functions
                if is_recall(function.get("name", ""))
            ]
        case "openai_responses":
            return [
                RecallCall(id=item["call_id"], name=item["name"], arguments=item.get("arguments") or "{}")
                for item in told["output"]
                if item.get("type") == "function_call" and is_recall(item["name"])
            ]


def extended(
    body: bytes, answer: bytes, calls: Sequence[RecallCall], results: Sequence[str], format: Format
) -> bytes:
    """Return the request that goes on from an answer by what its recall calls brought back."""
    told: dict[str, Any] = read_plain(answer)
    pairs = list(zip(calls, results, strict=True))
    items: list[object]
    match format:
        case "anthropic":
            blocks = [
                {"type": "tool_result", "tool_use_id": call.id, "content": said} for call, said in pairs
            ]
            items = [{"role": "assistant", "content": told["content"]}, {"role": "user", "content": blocks}]
        case "openai_chat":
            items = [
                told["choices"][0]["message"],
                *({"role": "tool", "tool_call_id": call.id, "content": said} for call, said in pairs),
            ]
        case "openai_responses":
            items = [
                *told["output"],
                *(
                    {"type": "function_call_output", "call_id": call.id, "output": said}
                    for call, said in pairs
                ),
            ]
    listed = "input" if format == "openai_responses" else "messages"
    return with_items(body, listed, [write_json(item) for item in items])


def _is_free(choice: bytes) -> bool:
    return choice in _AUTO or (b'"type"' in choice and b'"auto"' in choice)
