"""A request as a client wrote it, taken apart as far as the gateway needs, and what leaves for the provider."""

import re
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.cache.marks import NOWHERE, Marks
from lowwater.core.formats.anthropic import thinking_for
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.openai_responses import is_elsewhere
from lowwater.core.legality import begun_by_user
from lowwater.core.mechanisms.native import sent_from
from lowwater.core.messages import Format, Message
from lowwater.core.strict_json import read_fields, read_json, write_array, write_object
from lowwater.errors import BadInput, UnreadableJson
from lowwater.gateway.options import Marking
from lowwater.gateway.session_lookup import GROUP
from lowwater.session.request import (
    PreparedRequest,
    with_breakpoints,
    with_chat_marks,
    with_marks,
    with_marks_left,
)

_ASKS = (
    re.compile(r"create a detailed summary of (the|our|this) conversation", re.IGNORECASE),  # Claude Code
    re.compile(r"CONTEXT CHECKPOINT COMPACTION"),  # Codex
    re.compile(r"detailed (prompt|summary) for continuing (our|the) conversation", re.IGNORECASE),  # opencode
    re.compile(r"\AHere is the conversation so far:\s+<conversation>"),  # opencode, apart from its list
    re.compile(r"\AYou are a summarization agent creating a context checkpoint"),  # Hermes, likewise
    re.compile(r"summari[sz]e (our|the|this) (entire |whole )?conversation", re.IGNORECASE),
    re.compile(
        r"(generate|provide|write) (a|the) .{0,40}<state_snapshot>", re.IGNORECASE | re.DOTALL
    ),  # Gemini CLI
    re.compile(
        r"provide a (concise|detailed|structured) summary of the (conversation|session)", re.IGNORECASE
    ),
)
_LOOKED_AT = 20_000
"""Characters of a message's end and beginning in which a question is looked for."""
_EDGE = 6
"""Messages at each end of a list in which a summary is looked for: Claude Code's begins with it, Codex's ends with it, Hermes keeps a few before."""
_LONG_LINE = 40
_MOST_LINES = 60


def asks_for_summary(message: Message) -> bool:
    """Return whether a client's newest message asks the model to summarise the conversation; what tools said does not ask."""
    if message.role != "user":
        return False
    text = message.text
    looked_at = text if len(text) <= 2 * _LOOKED_AT else text[:_LOOKED_AT] + text[-_LOOKED_AT:]
    return any(asks.search(looked_at) for asks in _ASKS)


def beside_question(message: Message) -> Message | None:
    """Return what a client sends in one message with its question: the results of tools, or nothing."""
    return message.with_parts(message.results) if message.results else None


def lines_of(text: str) -> list[bytes]:
    """Return keys of a text's long lines: a client that puts a summary into its next list may change what is around them."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    longest = [line for line in lines if len(line) >= _LONG_LINE][:_MOST_LINES]
    return [blake2b(b"line\0" + line.encode(errors="replace"), digest_size=16).digest() for line in longest]


def lines_in(messages: Sequence[Message]) -> tuple[bytes, ...]:
    """Return keys of the long lines in the first and the last messages of a list."""
    edges = messages if len(messages) <= 2 * _EDGE else [*messages[:_EDGE], *messages[-_EDGE:]]
    return tuple(dict.fromkeys(key for message in edges for key in lines_of(message.text)))


FORMATS: MappingProxyType[str, Format] = MappingProxyType(
    {
        "/v1/messages": "anthropic",
        "/v1/messages/count_tokens": "anthropic",
        "/v1/chat/completions": "openai_chat",
        "/v1/responses": "openai_responses",
    }
)
"""The paths whose bodies carry a conversation."""

COUNTING = "/v1/messages/count_tokens"

_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "thread-id",
    "thread_id",
    "session_id",
    "session-id",
    "x-session-id",
    "x-session-affinity",
    "conversation_id",
    "x-conversation-id",
)
"""By which clients tell their conversations apart. Codex names the session of all its agents, and the thread of each."""
_AGENT = "x-claude-code-agent-id"
"""Tells a sub-agent of Claude Code from the agent that called it, whose session it names as well."""
_PIECE = 64 * 1024
_NO_LIMIT = 1 << 40
_MOST_FIELDS = 1_000
_MOST_METADATA = 64 * 1024
_STEPS_EACH = 100
"""Brackets that the messages of a list have on average at most; what has more is not looked at to its end."""
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_BRACKET_OR_COMMA = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+([\[\]{},])", re.DOTALL)
_IN_USER_ID = re.compile(r"session[_\":\s]+([0-9a-f-]{16,64})", re.IGNORECASE)


class ClientRequest(Struct, frozen=True, kw_only=True):
    """One conversation request; `fields` are the body's, each in the bytes it was written in."""

    path: str
    format: Format
    body: bytes
    fields: dict[str, bytes]
    raws: list[bytes]
    """The whole list the client keeps, one piece of JSON for each message."""
    model: str
    streams: bool
    max_tokens: int | None
    hint: str
    """What the client says about which session this is."""

    @property
    def listed(self) -> str:
        """The name of the field that holds the list."""
        return listed_in(self.format)

    @property
    def system(self) -> bytes:
        """The system prompt that stands apart from the list."""
        return self.fields.get("instructions" if self.format == "openai_responses" else "system", b"")

    @property
    def tools(self) -> bytes:
        """The tools as they were sent."""
        return self.fields.get("tools", b"")

    @property
    def counts_only(self) -> bool:
        """Whether it asks for the size of a prompt and not for an answer."""
        return self.path == COUNTING

    @property
    def has_marks(self) -> bool:
        """Whether the client sets cache marks itself."""
        return b'"cache_control"' in self.body or b'"prompt_cache_breakpoint"' in self.body


class _Peek(Struct):
    model: str | None = None
    stream: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    prompt_cache_key: str | None = None
    metadata: dict[str, object] | None = None


_PEEKED = _Peek.__struct_fields__


def listed_in(format: Format) -> str:
    """Return the name of the field that holds the conversation."""
    return "input" if format == "openai_responses" else "messages"


class UnreadRequest(Struct, frozen=True, kw_only=True):
    """A request that the gateway does not take part in: it goes on as it came."""

    why: str


def read_client_request(
    path: str, body: bytes, headers: Mapping[str, str], *, most_messages: int = 0
) -> ClientRequest | UnreadRequest:
    """Return the request, or why it goes on as it came; `most_messages` is the longest list that is read, 0 for any.

    This is the one place where a body is checked. What it lets through is UTF-8 and JSON down to the last value, though
    not necessarily of a shape that any provider takes.
    """
    format = FORMATS[path]
    if not is_utf8(body):
        return UnreadRequest(why="not UTF-8")
    if most_messages and (too_many := _too_many(body, most_messages)):
        return UnreadRequest(why=too_many)
    try:
        fields = read_fields(body)
        listed = fields.get(listed_in(format), b"")
        if listed[:1] != b"[":
            return UnreadRequest(why="no list of messages")
        if format == "openai_responses" and is_elsewhere(fields):
            return UnreadRequest(why="conversation kept by the provider")
        # Only the fields it wants: the list is nearly all of a body, and reading over it takes its time.
        peeked = {name: fields[name] for name in _PEEKED if name in fields}
        if len(peeked.get("metadata", b"")) > _MOST_METADATA:
            del peeked["metadata"]
        peek = read_json(write_object(peeked), _Peek)
        raws = [bytes(item) for item in read_json(listed, list[Raw])]
    except BadInput as error:
        return UnreadRequest(why="not JSON" if isinstance(error, UnreadableJson) else "odd fields")
    if not raws or not peek.model:
        return UnreadRequest(why="no messages" if not raws else "no model")
    return ClientRequest(
        path=path,
        format=format,
        body=body,
        fields=fields,
        raws=raws,
        model=peek.model,
        streams=bool(peek.stream),
        max_tokens=_plausible(peek.max_completion_tokens or peek.max_tokens or peek.max_output_tokens),
        hint=_hint(headers, peek),
    )


def _too_many(body: bytes, most: int) -> str:
    """Return what a body has too many of, before any object is made of it; empty for nothing. What is not JSON is found later.

    Each value of the body is counted as if it were the list of messages.
    """
    if body.count(b",") < most:
        return ""
    depth = at = fields = values = 0
    for _ in range(_STEPS_EACH * max(most, _MOST_FIELDS)):
        # Further inside than the messages themselves only brackets matter, and commas are passed over.
        found = (_BRACKET_OR_COMMA if depth <= 2 else _BRACKET).match(body, at)
        if found is None:
            return ""
        at, mark = found.end(), found[1]
        if mark == b",":
            fields, values = (fields + 1, values) if depth == 1 else (fields, values + 1)
            if fields >= _MOST_FIELDS:
                return f"more than {_MOST_FIELDS:,} fields"
            if values >= most:
                return f"more than {most:,} messages"
        elif mark in b"[{":
            depth += 1
            values = 0 if depth == 2 else values
        else:
            depth -= 1
    return "too many values"


def _plausible(tokens: int | None) -> int | None:
    """Return a limit of the answer's length; one that no model can have is the provider's to refuse, and none here."""
    return tokens if tokens is not None and 0 <= tokens < _NO_LIMIT else None


def is_utf8(body: bytes) -> bool:
    """Return whether all of a body is UTF-8: what only finds the ends of strings does not look inside them."""
    if body.isascii():
        return True
    decoder = getincrementaldecoder("utf-8")()
    try:
        # Piece by piece, which is a third of the time and none of the memory of decoding it at once.
        for at in range(0, len(body), _PIECE):
            decoder.decode(body[at : at + _PIECE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _hint(headers: Mapping[str, str], peek: _Peek) -> str:
    for name in _SESSION_HEADERS:
        if headers.get(name):
            return f"{name}={headers[name][:200]}{headers.get(_AGENT, '')[:100]}"
    if peek.prompt_cache_key:
        return f"{GROUP}{peek.prompt_cache_key[:200]}"
    user = str((peek.metadata or {}).get("user_id", ""))[:2_000]
    found = _IN_USER_ID.search(user)
    return f"user_id={found[1]}" if found else ""


_LONG = b'"1h"'
_NOTHING = frozenset({b"", b"null"})


def outgoing(asked: ClientRequest, request: PreparedRequest, *, marking: Marking = "client") -> bytes:
    """Return the body to send; it is the very one that came if the view is whole and marks are the client's business."""
    if request.whole and marking == "client":
        return asked.body
    match asked.format:
        case "anthropic":
            changed = _messages(asked, request, marking)
        case "openai_chat":
            changed = _chat(asked, request, marking)
        case _:
            changed = {asked.listed: write_array(encode_messages(request.joined, asked.format))}
    return write_object(
        asked.fields | {name: value for name, value in changed.items() if value not in _NOTHING}
    )


def _messages(asked: ClientRequest, request: PreparedRequest, marking: Marking) -> dict[str, bytes]:
    messages = request.joined
    raws = encode_messages(begun_by_user(messages[sent_from(messages) :]), "anthropic")
    system, tools = request.system, asked.tools
    marks = _marks(asked, request, marking)
    if marks is not None and not marks.breakpoints:
        seams = request.seams_in("anthropic", count=len(raws)) if len(raws) == len(messages) else NOWHERE
        marked = with_marks(raws, system, tools, marks=marks, seams=seams)
        raws, system, tools = marked.messages, marked.system, marked.tools
    else:
        raws = with_marks_left(raws, system, tools)
    thinking = asked.fields.get("thinking", b"")
    return {
        "messages": write_array(raws),
        "system": system,
        "tools": tools,
        "thinking": thinking_for(thinking, raws) if thinking not in _NOTHING else b"",
    }


def _chat(asked: ClientRequest, request: PreparedRequest, marking: Marking) -> dict[str, bytes]:
    messages = request.joined
    raws = encode_messages(messages, "openai_chat")
    marks = _marks(asked, request, marking)
    if marks is not None and (marks.breakpoints or marks.in_chat):
        put = with_breakpoints if marks.breakpoints else with_chat_marks
        first = 1 if messages[0].role in {"system", "developer"} else 0
        seams = request.seams_in("openai_chat", count=len(raws)) if len(raws) == len(messages) else NOWHERE
        raws = put(raws, first=first, marks=marks, seams=seams)
    return {"messages": write_array(raws)}


def _marks(asked: ClientRequest, request: PreparedRequest, marking: Marking) -> Marks | None:
    """Return the marks to place: none where the client sets none, and for as long as the client asks where it does."""
    if request.marks is None or (marking == "client" and not asked.has_marks):
        return None
    if asked.format == "anthropic" and asked.has_marks and marking == "client":
        return replace(request.marks, ttl="1h" if _LONG in asked.body else "5m")
    return request.marks
