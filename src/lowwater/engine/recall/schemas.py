"""The two tools a model can recall with, as providers want them declared.

They stand in the cached prefix of every request: a changed word here costs every session its cache once.
"""

from typing import Any

import msgspec

SEARCH = "lowwater_search"
EXPAND = "lowwater_expand"
MOST_WANTED = 20

_SEARCHES = (
    "Search everything said and done earlier in this conversation, including what was compacted and is no longer visible: user "
    "messages, your own messages, tool calls with their arguments, complete tool results. Returns the messages that match best, "
    "each with its handle (such as lw:412), its size in tokens, an excerpt around the matching words and its neighbours. Use it "
    "when you need a detail from earlier that you cannot see now (an error message, a path, an id, a decision, what the user "
    "asked for) instead of guessing or repeating work. To read a match in full, give its handle to lowwater_expand."
)
_QUERY = (
    "Words that stand in the text you look for: an identifier, a file name, part of an error message. A message matches if it has "
    "at least one of them; more words, and rarer ones, rank higher."
)
_LIMIT = "How many messages to return, at most 20; 5 if left out."
_EXPANDS = (
    "Get back the original text behind a handle. Handles stand in placeholders such as [terminal · pytest · 18,204 chars elided · "
    "recall lw:412], in summaries of earlier turns (messages 12 to 408 are lw:12-408) and in the results of lowwater_search. The "
    "handle of one message returns it word for word, tool results and call arguments included; pictures are only named. A range "
    "returns its messages if they are short; otherwise, and for a summary, it lists what it consists of, one line each with handle, "
    "size and first line, to be expanded further. Text that is too long is cut at a line end, and the result says how to ask for "
    "the rest. When you know what you are looking for, ask `around` it: that is far smaller than the whole."
)
_HANDLE = "A message (lw:412) or a range of messages (lw:12-408)."
_AROUND = "Return only the passages around these words; works for ranges and summaries too."
_LINES = "Return only these lines of one message: [first, last], counted from 1."
_CHARACTERS = "Return only these characters of one message: [first, last], counted from 1."


def openai_tools() -> list[dict[str, Any]]:
    """Return the tools for `tools` of a chat request; a new list each time, always the same content."""
    return [
        {"type": "function", "function": {"name": name, "description": said, "parameters": schema}}
        for name, said, schema in _tools()
    ]


def anthropic_tools() -> list[dict[str, Any]]:
    """Return the tools for `tools` of a Messages request; a new list each time, always the same content."""
    return [{"name": name, "description": said, "input_schema": schema} for name, said, schema in _tools()]


def is_recall(name: str) -> bool:
    """Return whether a tool is one of these; an MCP client puts the server's name before it."""
    return name.rsplit("__", 1)[-1] in (SEARCH, EXPAND)


def offers_recall(tools_json: bytes) -> bool:
    """Return whether `tools` of a request, as JSON, let the model expand a handle; anything unreadable does not."""
    if EXPAND.encode() not in tools_json:
        return False
    try:
        tools = msgspec.json.decode(tools_json)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return isinstance(tools, list) and any(_name(tool).rsplit("__", 1)[-1] == EXPAND for tool in tools)


def _name(tool: object) -> str:
    if not isinstance(tool, dict):
        return ""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name if isinstance(name, str) else ""


def _tools() -> list[tuple[str, str, dict[str, Any]]]:
    search = {
        "query": {"type": "string", "description": _QUERY},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_WANTED, "description": _LIMIT},
    }
    expand = {
        "handle": {"type": "string", "description": _HANDLE},
        "around": {"type": "string", "description": _AROUND},
        "lines": _pair(_LINES),
        "characters": _pair(_CHARACTERS),
    }
    return [(SEARCH, _SEARCHES, _object(search, "query")), (EXPAND, _EXPANDS, _object(expand, "handle"))]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _pair(said: str) -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1}
    return {"type": "array", "items": number, "minItems": 2, "maxItems": 2, "description": said}
