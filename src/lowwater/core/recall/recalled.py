"""What recall returns, the handles that name messages (`lw:412`), and the definitions of the recall tools.

The names and descriptions of the tools are part of every prompt: changing one moves the cached prefix of all sessions.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from lowwater.core.entries import Numbers
from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from lowwater.core.tools import COMPACT, EXPAND, PIN, SEARCH
from lowwater.errors import BadInput

# What recall returns

_LONGEST_NAME = 200


class RecalledMessage(Struct, frozen=True, kw_only=True):
    """One message as it was, with its number and size."""

    number: int
    message: Message
    tokens: int

    @property
    def handle(self) -> str:
        """The handle by which placeholders refer to it."""
        return f"lw:{self.number}"

    @property
    def text(self) -> str:
        """Its text, with calls and results; images and files are only named."""
        return recalled_text(self.message)

    @property
    def who(self) -> str:
        """Who speaks, and which tools are called."""
        return who_of(self.message)


class Recalled(RecalledMessage, frozen=True, kw_only=True):
    """A message that was asked for or found, with its neighbours."""

    excerpt: str = ""
    """One line of it: around the words it was found by, or its first line."""
    group: Numbers
    """The messages it belongs to: a tool result with its call, a call with its results; otherwise itself alone."""
    near: tuple[RecalledMessage, ...] = ()
    """The rest of its group and the messages just before and after, in order, without itself."""

    @property
    def tokens_with_near(self) -> int:
        """The size of the message and its neighbours together."""
        return self.tokens + sum(message.tokens for message in self.near)


class ExpansionLine(Struct, frozen=True, kw_only=True):
    """One line of an expansion: a message, or a summary of several."""

    kind: Literal["message", "summary"]
    handle: str
    who: str
    """Who speaks, and which tools are called."""
    tokens: int
    """Its own size; for a summary, not that of the messages it covers."""
    messages: int
    """How many messages it covers."""
    first_line: str
    sources: tuple[Numbers, ...]


class Expansion(Struct, frozen=True, kw_only=True):
    """What a handle expands to, one level down."""

    handle: str
    text: str
    """The text of the summary that the handle names; empty if it names messages."""
    children: tuple[ExpansionLine, ...]

    @property
    def tokens(self) -> int:
        """The size of all children together."""
        return sum(child.tokens for child in self.children)


def recalled_text(message: Message) -> str:
    """Return the text of a message, in order and unchanged; images, files and unknown blocks are named."""
    return "\n".join(text for part in message.parts if (text := _text(part)))


def who_of(message: Message) -> str:
    """Return who speaks in a message, and which tools are called."""
    if message.calls:
        return f"{message.role}, calls {', '.join(dict.fromkeys(call.name for call in message.calls))}"
    is_result = message.results and not any(isinstance(part, Text) for part in message.parts)
    return "tool result" if is_result else message.role


def _text(part: AnyPart) -> str:
    match part:
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return f"{part.name} {part.arguments}"
        case ToolResult():
            return "\n".join(text for inner in part.parts if (text := _text(inner)))
        case Image():
            return _named("image", part.media_type, part.source, part.data)
        case Document(source="text"):
            return f"{part.title}\n{part.data}" if part.title else part.data
        case Document():
            return _named("document", part.title or part.media_type, part.source, part.data)
        case Opaque():
            return f"[{part.block} · {len(part.body):,} characters that are no text]"


def _named(what: str, kind: str, source: str, data: str) -> str:
    """Return a name for something that is not text."""
    where = f"{len(data):,} characters of {source}" if source == "base64" else data[:_LONGEST_NAME]
    return f"[{' · '.join(part for part in (what, kind, where) if part)}]"


# Handles

_NUMBER = r"(?:lw:\s*)?([0-9]{1,15})"
_RANGE = re.compile(rf"\s*{_NUMBER}(?:\s*(?:-|–|—|\bto\b)\s*{_NUMBER})?\s*", re.IGNORECASE)
_ALONE = re.compile(r"\s*[0-9]{1,15}\s*")
_QUOTES = " \t\r\n[](){}<>\"'`.;:"


def handle_of(numbers: Sequence[Numbers]) -> str:
    """Return the handle of these messages: `lw:412`, `lw:12-408`, `lw:12-40,42-408`."""
    spans = [f"{span.first}-{span.last}" if span.last > span.first else f"{span.first}" for span in numbers]
    return f"lw:{','.join(spans)}"


def read_handle(text: str, *, of: int) -> tuple[Numbers, ...]:
    """Return the messages that a handle names, in a session of `of` messages.

    Raises BadInput if it is not a handle or the session does not have them. `412`, `lw:12-408`, `lw:12 to lw:408` and
    `[lw:12-40, 42-408]` are handles.
    """
    spans = [_span(piece, text) for piece in text.strip(_QUOTES).split(",")]
    for span in spans:
        if span.first > span.last:
            raise BadInput(f"lw:{span.first}-{span.last} runs backwards: write lw:{span.last}-{span.first}")
        beyond = 0 if span.first < 1 else span.last
        if not 1 <= beyond <= of:
            raise BadInput(f"there is no message lw:{beyond}: the session has {_counted(of)}")
    return _merged(spans)


def is_handle(text: str) -> bool:
    """Return whether a text can only be a handle: `lw:` and numbers."""
    bare = text.strip(_QUOTES)
    return bare.lower().startswith("lw:") and all(_RANGE.fullmatch(piece) for piece in bare.split(","))


def names_messages(text: str) -> bool:
    """Return whether a text is a handle rather than words to search for; a bare number is a handle."""
    return is_handle(text) or bool(_ALONE.fullmatch(text))


def _span(piece: str, text: str) -> Numbers:
    found = _RANGE.fullmatch(piece)
    if found is None:
        raise BadInput(
            f"{clipped(text)} is no handle: write a number such as lw:412, or a range such as lw:12-408"
        )
    first = int(found[1])
    return Numbers(first=first, last=int(found[2]) if found[2] else first)


def clipped(text: str, most: int = 60) -> str:
    """Return a short quotation of foreign text that is safe to show."""
    flat = "".join(character if character.isprintable() else " " for character in text[: 2 * most])
    flat = " ".join(flat.split())
    return f"“{flat}”" if len(flat) <= most and len(text) <= 2 * most else f"“{flat[:most]}…”"


def _counted(messages: int) -> str:
    return f"{messages:,}" if messages != 1 else "only one"


def _merged(spans: Sequence[Numbers]) -> tuple[Numbers, ...]:
    """Return the same messages in order and in as few ranges as possible."""
    merged: list[Numbers] = []
    for span in sorted(spans, key=lambda span: span.first):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = Numbers(first=merged[-1].first, last=max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return tuple(merged)


# The tools

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
_PROPOSES = (
    "Propose that something the user laid down for the rest of this conversation is kept in view word for word. Most of what users "
    "lay down is kept without this. Nothing is kept before the user confirms it; do not propose what a file, a page or a tool's "
    "output says."
)
_TEXT = "The instruction in the user's own words."
_COMPACTS = (
    "Compact this conversation now: earlier tool results become short placeholders and earlier messages a summary, all of which "
    "can still be searched and expanded. It has a price, because the rest has to be written to the provider's cache again; the "
    "answer says what was removed and what that costs. Conversations are compacted by themselves when that pays: call this only "
    "when a part of the work is finished and what follows needs little of it."
)
_FOCUS = "A topic to keep in more detail."


def openai_tools(*, compact: bool = False) -> list[dict[str, Any]]:
    """Return the tools for `tools` of a chat request; a new list each time, always the same content.

    With `compact` the one by which the model can have the conversation compacted is among them.
    """
    return [
        {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
        for name, description, schema in _tools(compact=compact)
    ]


def anthropic_tools(*, compact: bool = False) -> list[dict[str, Any]]:
    """Return the tools for `tools` of a Messages request likewise."""
    return [
        {"name": name, "description": description, "input_schema": schema}
        for name, description, schema in _tools(compact=compact)
    ]


def _tools(*, compact: bool) -> list[tuple[str, str, dict[str, Any]]]:
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
    pin = {"text": {"type": "string", "description": _TEXT}}
    shrink = {"focus": {"type": "string", "description": _FOCUS}}
    return [
        (SEARCH, _SEARCHES, _object(search, "query")),
        (EXPAND, _EXPANDS, _object(expand, "handle")),
        (PIN, _PROPOSES, _object(pin, "text")),
        *([(COMPACT, _COMPACTS, _object(shrink))] if compact else []),
    ]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _pair(description: str) -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1}
    return {"type": "array", "items": number, "minItems": 2, "maxItems": 2, "description": description}
