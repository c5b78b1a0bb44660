"""A client's conversation request: read as far as the gateway needs it, and written again as the body for the provider."""

import re
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.cache.marks import NOWHERE, CacheMarks
from lowwater.core.formats.anthropic import thinking_for
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.openai_responses import is_elsewhere
from lowwater.core.legality import begin_with_user
from lowwater.core.messages import Format, Message, sent_from
from lowwater.core.strict_json import read_fields, read_json, write_array, write_object
from lowwater.errors import BadInput, UnreadableJson
from lowwater.gateway.options import Marking
from lowwater.gateway.session_lookup import GROUP_HINT
from lowwater.session.request import (
    PreparedRequest,
    with_breakpoints,
    with_chat_marks,
    with_marks,
    with_marks_left,
)
from lowwater.settings import CacheTtl

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
"""Headers by which clients tell their conversations apart. Codex sends the session of all its agents and the thread of each."""
_AGENT_HEADER = "x-claude-code-agent-id"
"""Distinguishes a sub-agent of Claude Code from the agent that called it: both send the same session id."""
_CHUNK = 64 * 1024
_NO_LIMIT = 1 << 40
_MOST_FIELDS = 1_000
_MOST_METADATA = 64 * 1024
_BRACKETS_PER_MESSAGE = 100
"""Average number of brackets per message up to which a body is counted; one with more is not read."""
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_BRACKET_OR_COMMA = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+([\[\]{},])", re.DOTALL)
_IN_USER_ID = re.compile(r"session[_\":\s]+([0-9a-f-]{16,64})", re.IGNORECASE)
_LONG_TTL = b'"1h"'
_NOTHING = frozenset({b"", b"null"})

_SUMMARY_QUESTIONS = (
    re.compile(r"create a detailed summary of (the|our|this) conversation", re.IGNORECASE),  # Claude Code
    re.compile(r"CONTEXT CHECKPOINT COMPACTION"),  # Codex
    re.compile(r"detailed (prompt|summary) for continuing (our|the) conversation", re.IGNORECASE),  # opencode
    re.compile(r"\AHere is the conversation so far:\s+<conversation>"),  # opencode, in a request of its own
    re.compile(r"\AYou are a summarization agent creating a context checkpoint"),  # Hermes, likewise
    re.compile(r"summari[sz]e (our|the|this) (entire |whole )?conversation", re.IGNORECASE),
    re.compile(
        r"(generate|provide|write) (a|the) .{0,40}<state_snapshot>", re.IGNORECASE | re.DOTALL
    ),  # Gemini CLI
    re.compile(
        r"provide a (concise|detailed|structured) summary of the (conversation|session)", re.IGNORECASE
    ),
)
_SEARCHED = 20_000
"""Characters at each end of a message that are searched for a question."""
_EDGE = 6
"""Messages at each end of a list that are searched for a summary: Claude Code puts it first, Codex last, Hermes after a few."""
_LONG_LINE = 40
_MOST_LINES = 60


class ClientRequest(Struct, frozen=True, kw_only=True):
    """One conversation request; `fields` are the body's fields, each in the bytes it was written in."""

    path: str
    format: Format
    body: bytes
    fields: dict[str, bytes]
    raws: list[bytes]
    """The client's whole list, one piece of JSON per message."""
    model: str
    streams: bool
    max_tokens: int | None
    hint: str
    """The client's own name for the session or conversation; empty if it sends none."""

    @property
    def messages_field(self) -> str:
        """The name of the field that holds the messages."""
        return messages_field_of(self.format)

    @property
    def system(self) -> bytes:
        """The system prompt that is a field of its own."""
        return self.fields.get("instructions" if self.format == "openai_responses" else "system", b"")

    @property
    def tools(self) -> bytes:
        """The tools as the client sent them."""
        return self.fields.get("tools", b"")

    @property
    def counts_only(self) -> bool:
        """Whether it asks for the size of a prompt instead of an answer."""
        return self.path == COUNTING

    @property
    def has_marks(self) -> bool:
        """Whether the client sets cache marks itself."""
        return b'"cache_control"' in self.body or b'"prompt_cache_breakpoint"' in self.body

    @property
    def marks_ttl(self) -> CacheTtl | None:
        """The lifetime that the client's own cache marks ask for; None if it sets none or its format has no lifetimes."""
        if self.format != "anthropic" or not self.has_marks:
            return None
        return "1h" if _LONG_TTL in self.body else "5m"


class _Parameters(Struct):
    model: str | None = None
    stream: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    prompt_cache_key: str | None = None
    metadata: dict[str, object] | None = None


_PARAMETERS = _Parameters.__struct_fields__


def messages_field_of(format: Format) -> str:
    """Return the name of the field that holds the messages in a format."""
    return "input" if format == "openai_responses" else "messages"


class UnreadRequest(Struct, frozen=True, kw_only=True):
    """A request that is not read and has to be forwarded unchanged."""

    why: str


def read_client_request(
    path: str, body: bytes, headers: Mapping[str, str], *, most_messages: int = 0
) -> ClientRequest | UnreadRequest:
    """Return the request, or why it has to be forwarded unchanged; `most_messages` limits the list, 0 for no limit.

    This is the one place where a body is checked: what it lets through is valid UTF-8 and JSON down to the last value, though
    not necessarily of a shape that a provider takes.
    """
    format = FORMATS[path]
    if not is_utf8(body):
        return UnreadRequest(why="not UTF-8")
    if most_messages and (too_many := _too_many(body, most_messages)):
        return UnreadRequest(why=too_many)
    try:
        fields = read_fields(body)
        listed = fields.get(messages_field_of(format), b"")
        if listed[:1] != b"[":
            return UnreadRequest(why="no list of messages")
        if format == "openai_responses" and is_elsewhere(fields):
            return UnreadRequest(why="conversation kept by the provider")
        # Only these fields are decoded: the messages are nearly all of a body, and skipping over them takes time.
        parameters = {name: fields[name] for name in _PARAMETERS if name in fields}
        if len(parameters.get("metadata", b"")) > _MOST_METADATA:
            del parameters["metadata"]
        parsed = read_json(write_object(parameters), _Parameters)
        raws = [bytes(item) for item in read_json(listed, list[Raw])]
    except BadInput as error:
        return UnreadRequest(why="not JSON" if isinstance(error, UnreadableJson) else "odd fields")
    if not raws or not parsed.model:
        return UnreadRequest(why="no messages" if not raws else "no model")
    return ClientRequest(
        path=path,
        format=format,
        body=body,
        fields=fields,
        raws=raws,
        model=parsed.model,
        streams=bool(parsed.stream),
        max_tokens=_plausible(parsed.max_completion_tokens or parsed.max_tokens or parsed.max_output_tokens),
        hint=_hint_in(headers, parsed),
    )


def _too_many(body: bytes, most: int) -> str:
    """Return what a body has too many of, before it is parsed; empty if nothing. Invalid JSON is found later.

    Each value of the body is counted as if it were the list of messages.
    """
    if body.count(b",") < most:
        return ""
    depth = at = fields = values = 0
    for _ in range(_BRACKETS_PER_MESSAGE * max(most, _MOST_FIELDS)):
        # Deeper than the messages themselves only brackets matter, and commas are skipped.
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
    """Return the limit of the answer's length; None for an absurd one, which the provider will refuse."""
    return tokens if tokens is not None and 0 <= tokens < _NO_LIMIT else None


def is_utf8(body: bytes) -> bool:
    """Return whether a body is valid UTF-8; a JSON parser that skips over raw values does not check inside them."""
    if body.isascii():
        return True
    decoder = getincrementaldecoder("utf-8")()
    try:
        # In chunks: that takes a third of the time of decoding it at once, and no memory.
        for at in range(0, len(body), _CHUNK):
            decoder.decode(body[at : at + _CHUNK])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _hint_in(headers: Mapping[str, str], parsed: _Parameters) -> str:
    for name in _SESSION_HEADERS:
        if headers.get(name):
            return f"{name}={headers[name][:200]}{headers.get(_AGENT_HEADER, '')[:100]}"
    if parsed.prompt_cache_key:
        return f"{GROUP_HINT}{parsed.prompt_cache_key[:200]}"
    user = str((parsed.metadata or {}).get("user_id", ""))[:2_000]
    found = _IN_USER_ID.search(user)
    return f"user_id={found[1]}" if found else ""


def outgoing_body(
    client_request: ClientRequest, request: PreparedRequest, *, marking: Marking = "client"
) -> bytes:
    """Return the body to send: the client's own bytes if nothing was compacted and the client places the cache marks."""
    if request.is_unchanged and marking == "client":
        return client_request.body
    match client_request.format:
        case "anthropic":
            changed = _anthropic_fields(client_request, request, marking)
        case "openai_chat":
            changed = _chat_fields(client_request, request, marking)
        case _:
            changed = {
                client_request.messages_field: write_array(
                    encode_messages(request.joined, client_request.format)
                )
            }
    return write_object(
        client_request.fields | {name: value for name, value in changed.items() if value not in _NOTHING}
    )


def _anthropic_fields(
    client_request: ClientRequest, request: PreparedRequest, marking: Marking
) -> dict[str, bytes]:
    messages = request.joined
    raws = encode_messages(begin_with_user(messages[sent_from(messages) :]), "anthropic")
    system, tools = request.system, client_request.tools
    marks = _marks(client_request, request, marking)
    if marks is not None and not marks.breakpoints:
        seams = request.seams_in("anthropic", count=len(raws)) if len(raws) == len(messages) else NOWHERE
        marked = with_marks(raws, system, tools, marks=marks, seams=seams)
        raws, system, tools = marked.messages, marked.system, marked.tools
    else:
        raws = with_marks_left(raws, system, tools)
    thinking = client_request.fields.get("thinking", b"")
    return {
        "messages": write_array(raws),
        "system": system,
        "tools": tools,
        "thinking": thinking_for(thinking, raws) if thinking not in _NOTHING else b"",
    }


def _chat_fields(
    client_request: ClientRequest, request: PreparedRequest, marking: Marking
) -> dict[str, bytes]:
    messages = request.joined
    raws = encode_messages(messages, "openai_chat")
    marks = _marks(client_request, request, marking)
    if marks is not None and (marks.breakpoints or marks.in_chat):
        put = with_breakpoints if marks.breakpoints else with_chat_marks
        first = 1 if messages[0].role in {"system", "developer"} else 0
        seams = request.seams_in("openai_chat", count=len(raws)) if len(raws) == len(messages) else NOWHERE
        raws = put(raws, first=first, marks=marks, seams=seams)
    return {"messages": write_array(raws)}


def _marks(client_request: ClientRequest, request: PreparedRequest, marking: Marking) -> CacheMarks | None:
    """Return the marks to place; with `marking="client"` only where the client sets some, and with the TTL that it asks for."""
    if request.marks is None or (marking == "client" and not client_request.has_marks):
        return None
    ttl = client_request.marks_ttl if marking == "client" else None
    return request.marks if ttl is None else replace(request.marks, ttl=ttl)


def asks_for_summary(message: Message) -> bool:
    """Return whether a message asks the model to summarise the conversation; only a user's message can."""
    if message.role != "user":
        return False
    text = message.text
    searched = text if len(text) <= 2 * _SEARCHED else text[:_SEARCHED] + text[-_SEARCHED:]
    return any(question.search(searched) for question in _SUMMARY_QUESTIONS)


def results_beside_question(message: Message) -> Message | None:
    """Return the tool results that a client sends in one message with its question; None if there are none."""
    return message.with_parts(message.results) if message.results else None


def line_keys(text: str) -> list[bytes]:
    """Return keys of a text's long lines, by which a summary is found again: clients change the text around it."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    longest = [line for line in lines if len(line) >= _LONG_LINE][:_MOST_LINES]
    return [blake2b(b"line\0" + line.encode(errors="replace"), digest_size=16).digest() for line in longest]


def edge_line_keys(messages: Sequence[Message]) -> tuple[bytes, ...]:
    """Return keys of the long lines in the first and last messages of a list."""
    edges = messages if len(messages) <= 2 * _EDGE else [*messages[:_EDGE], *messages[-_EDGE:]]
    return tuple(dict.fromkeys(key for message in edges for key in line_keys(message.text)))
