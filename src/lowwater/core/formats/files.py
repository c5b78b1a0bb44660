"""Conversations and whole sessions as files, with their secrets removed on request."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.api_calls import Request
from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Compacted,
    Edit,
    Entry,
    Opened,
    PreambleChanged,
    SummarizedSpan,
    ViewItem,
)
from lowwater.core.events import Compaction, Event, Rejected, Skip, TurnRecord
from lowwater.core.formats.codec import (
    decode_messages,
    decode_request,
    detect,
    detect_format,
    encode_messages,
    encode_request,
    reread,
    split_messages,
)
from lowwater.core.formats.openai_responses import is_item_type
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Format, Message
from lowwater.core.secrets.redaction import conceal, conceal_json, conceal_message, conceal_parts
from lowwater.core.stored import About
from lowwater.core.strict_json import read_fields, read_json, without_line_breaks, write_array, write_json
from lowwater.errors import BadInput, IllegalEntry, UnknownFormat, UnreadableJson

T = TypeVar("T")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


# Conversations

Shape = Literal["request", "array", "lines"]


class Conversation(Struct, frozen=True, kw_only=True):
    """The messages of a file, with the system prompt, tools and model if it has them; `shape` says how to write it back.

    `request`: one API request body, kept in `around`. `array`: a JSON array. `lines`: one message per line, after an
    optional header line that is kept in `around`.
    """

    shape: Shape
    format: Format
    messages: tuple[Message, ...]
    around: bytes = b""
    system: bytes = b""
    tools: bytes = b""
    model: str = ""


class _Header(Struct):
    model: str | None = None


def decode_conversation(data: bytes, format: Format | None = None) -> Conversation:
    """Return the conversation in `data`, or raise a BadInput that says what to change."""
    text = data.removeprefix(_BYTE_ORDER_MARK).strip()
    if not text:
        raise UnknownFormat(
            "nothing to read: expected a JSON array of messages, JSON lines or a request body"
        )
    if text[:1] == b"[":
        return _from_array(text, format)
    if text[:1] != b"{":
        raise UnknownFormat("not a conversation: expected JSON that starts with [ or {")
    if b"\n" in text and _is_object(text.split(b"\n", 1)[0]):
        return _from_lines(text, format)
    fields = read_fields(text)
    if "messages" not in fields and "input" not in fields and _is_message(fields):
        return _from_lines(text, format)
    return _from_request(text, format)


def _from_array(text: bytes, format: Format | None) -> Conversation:
    raws = split_messages(text)
    found = format or detect(raws)
    return Conversation(shape="array", format=found, messages=tuple(decode_messages(raws, found)))


def _from_request(text: bytes, format: Format | None) -> Conversation:
    request = decode_request(text, format)
    return Conversation(
        shape="request",
        format=request.format,
        messages=request.messages,
        around=text,
        system=request.system,
        tools=request.tools,
        model=request.model,
    )


def _from_lines(text: bytes, format: Format | None) -> Conversation:
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), start=1) if line.strip()]
    header = b""
    raws: list[bytes] = []
    for number, line in lines:
        try:
            fields = read_fields(line)
        except BadInput as error:
            raise type(error)(f"line {number}: {error}") from None
        if _is_message(fields):
            raws.append(line)
        elif number == 1:
            header = line
        else:
            raise UnknownFormat(f"line {number} has no role: expected one message per line")
    if not raws:
        raise UnknownFormat(
            "no line has a role: expected one message per line, or a request body with `messages`"
        )
    found = format or detect(raws)
    messages = tuple(decode_messages(raws, found))
    model = read_json(header, _Header).model or "" if header else ""
    return Conversation(shape="lines", format=found, messages=messages, around=header, model=model)


def _is_message(fields: dict[str, bytes]) -> bool:
    """Return whether an object is a message or an item of the Responses format."""
    kind = fields.get("type", b"").strip(b'"').decode(errors="replace")
    return "role" in fields or (is_item_type(kind) and kind != "message")


def _is_object(line: bytes) -> bool:
    try:
        read_fields(line)
    except BadInput:
        return False
    return True


def encode_conversation(conversation: Conversation) -> bytes:
    """Return the conversation in the shape it was read in; unedited messages stay byte for byte."""
    messages = encode_messages(conversation.messages, conversation.format)
    match conversation.shape:
        case "array":
            return write_array(messages)
        case "lines":
            lines = [conversation.around, *messages] if conversation.around else messages
            return b"".join(without_line_breaks(line) + b"\n" for line in lines)
        case "request":
            return encode_request(_request(conversation))


def _request(conversation: Conversation) -> Request:
    return Request(
        format=conversation.format,
        body=conversation.around,
        messages=conversation.messages,
        system=conversation.system,
        tools=conversation.tools,
        model=conversation.model,
    )


def message_lines(messages: Sequence[Message]) -> list[bytes]:
    """Return the messages as one JSON object each, without line breaks, in the format that the latest of them have.

    Messages that arrived in that format, or look the same in it, keep their bytes except for line breaks between fields.
    """
    format = _last_format(messages)
    read = list(messages)
    for other in get_args(Format):
        read = reread(read, assumed=other, format=format)
    return [_on_one_line(raw) for raw in encode_messages(read, format)]


def _last_format(messages: Sequence[Message]) -> Format:
    """Return the format that the latest messages allow, or else the one that the last was decoded in."""
    wires = [message.wire for message in reversed(messages) if message.wire is not None]
    found = detect_format(wire.raw for wire in wires)
    return found or (wires[0].format if wires else "openai_chat")


def _on_one_line(raw: bytes) -> bytes:
    # JSON strings cannot hold bare line breaks, so this changes only the space between fields.
    return raw.strip().replace(b"\n", b" ").replace(b"\r", b" ")


# System prompts and tools for people to read


class _Block(Struct, frozen=True, kw_only=True):
    text: str = ""


class _Function(Struct, frozen=True, kw_only=True):
    name: str = ""


class _Tool(Struct, frozen=True, kw_only=True):
    name: str = ""
    type: str = ""
    function: _Function = _Function()


def system_text(system: bytes) -> str:
    """Return the text of a system prompt in JSON, a string or blocks; any other value is returned as it is written."""
    if not system:
        return ""
    try:
        prompt = msgspec.json.decode(system, type=str | list[_Block] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return system.decode(errors="replace")
    if isinstance(prompt, list):
        return "\n\n".join(block.text for block in prompt if block.text)
    return prompt or ""


def tool_names(tools: bytes) -> tuple[str, ...]:
    """Return the names of tools in JSON, or the type of a tool without a name; none if the JSON is not a list of tools."""
    if not tools:
        return ()
    try:
        known = msgspec.json.decode(tools, type=list[_Tool] | None)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ()
    return tuple(tool.function.name or tool.name or tool.type for tool in known or ())


# Whole sessions

_FORM_VERSION = 1
_SESSION_KEY = "lowwater_session"


class WholeSession(Struct, frozen=True, kw_only=True):
    """Everything that a store holds of a session."""

    name: str
    about: About = About()
    entries: tuple[Entry, ...] = ()
    records: tuple[TurnRecord, ...] = ()
    events: tuple[Event, ...] = ()
    carried: bytes = b""


class _SessionHeader(Struct, frozen=True, kw_only=True):
    """The first line; its counts reveal a file that was cut short."""

    lowwater_session: int
    name: str
    about: About
    entries: int
    records: int
    events: int
    carried: bytes = b""


class _SessionLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Any other line, with exactly one of these."""

    entry: Entry | None = None
    record: TurnRecord | None = None
    event: Event | None = None


def session_lines(session: WholeSession) -> Iterator[bytes]:
    """Yield the lines of a session's file, without line endings; raise BadInput if its text is not valid Unicode."""
    yield write_json(
        _SessionHeader(
            lowwater_session=_FORM_VERSION,
            name=session.name,
            about=session.about,
            entries=len(session.entries),
            records=len(session.records),
            events=len(session.events),
            carried=session.carried,
        )
    )
    for entry in session.entries:
        yield write_json(_SessionLine(entry=_without_memos(entry)))
    for record in session.records:
        yield write_json(_SessionLine(record=record))
    for event in session.events:
        yield write_json(_SessionLine(event=event))


def is_session_file(data: bytes) -> bool:
    """Return whether these bytes are a whole session, judged by their first line."""
    try:
        return _SESSION_KEY in read_fields(data.split(b"\n", 1)[0])
    except BadInput:
        return False


def read_session(data: bytes) -> WholeSession:
    """Return the session in a file, or raise a BadInput that says what is wrong."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if not lines:
        raise UnreadableJson("nothing to read: expected a whole session")
    first = _read_line(*lines[0], _SessionHeader)
    if first.lowwater_session != _FORM_VERSION:
        raise BadInput(
            f"the session is written in form {first.lowwater_session} and this Lowwater reads form {_FORM_VERSION}: update it"
        )
    entries: list[Entry] = []
    records: list[TurnRecord] = []
    events: list[Event] = []
    for number, line in lines[1:]:
        parsed = _read_line(number, line, _SessionLine)
        if parsed.entry is not None:
            entries.append(_without_memos(parsed.entry))
        elif parsed.record is not None:
            records.append(parsed.record)
        elif parsed.event is not None:
            events.append(parsed.event)
        else:
            raise BadInput(f"line {number} has neither an entry, a record nor an event")
    _check_complete(first, entries, records, events)
    return WholeSession(
        name=first.name,
        about=first.about,
        entries=tuple(entries),
        records=tuple(records),
        events=tuple(events),
        carried=first.carried,
    )


def _read_line(number: int, line: bytes, kind: type[T]) -> T:
    try:
        return read_json(line, kind)
    except BadInput as error:
        raise type(error)(f"line {number}: {error}") from None


def _check_complete(
    first: _SessionHeader, entries: Sequence[Entry], records: Sequence[TurnRecord], events: Sequence[Event]
) -> None:
    announced = (first.entries, first.records, first.events)
    found = (len(entries), len(records), len(events))
    if announced != found:
        raise BadInput(
            "the session is not whole: its first line announces {} entries, {} records and {} events, but there are {}, {} and {}".format(
                *announced, *found
            )
        )
    if entries and not isinstance(entries[0], Opened):
        raise BadInput("the session does not begin with its opening")
    try:
        Ledger().extend(entries)
    except IllegalEntry as error:
        raise BadInput(f"the session's entries do not fit together: {error}") from None


def _without_memos(entry: Entry) -> Entry:
    """Return the entry without its messages' cached digests, which are neither written to a file nor trusted from one."""
    if not isinstance(entry, Appended) or not any(message.memo for message in entry.messages):
        return entry
    return replace(entry, messages=tuple(map(_without_memo, entry.messages)))


def _without_memo(message: Message) -> Message:
    return replace(message, memo=b"") if message.memo else message


# Whole sessions without secrets


class Concealed(Struct, frozen=True, kw_only=True):
    """A session without secrets, and how many of its entries and events contained any."""

    session: WholeSession
    changed: int


def conceal_session(session: WholeSession) -> Concealed:
    """Return the session with secrets removed from everything a person or a tool wrote; the same session if it has none.

    If there is any secret, `carried` is emptied too, because it may quote messages.
    """
    entries = tuple(map(_conceal_entry, session.entries))
    events = tuple(map(_conceal_event, session.events))
    title = conceal(session.about.title)
    changed = sum(
        new is not old
        for new, old in zip((*entries, *events), (*session.entries, *session.events), strict=True)
    ) + (title != session.about.title)
    if not changed:
        return Concealed(session=session, changed=0)
    about = replace(session.about, title=title)
    return Concealed(
        session=replace(session, about=about, entries=entries, events=events, carried=b""), changed=changed
    )


def _conceal_entry(entry: Entry) -> Entry:
    match entry:
        case Appended():
            new: Entry = replace(entry, messages=tuple(map(conceal_message, entry.messages)))
        case PreambleChanged():
            new = replace(entry, system=_conceal_body(entry.system), tools=_conceal_body(entry.tools))
        case Compacted():
            new = replace(entry, items=tuple(map(_conceal_item, entry.items)))
        case _:
            return entry
    return entry if _is_unchanged(new, entry) else new


def _is_unchanged(new: Entry, old: Entry) -> bool:
    # Messages and parts that compare equal may differ in fields outside their content, which can hold a secret too.
    if isinstance(new, Appended) and isinstance(old, Appended):
        return all(a is b for a, b in zip(new.messages, old.messages, strict=True))
    return write_json(new) == write_json(old)


def _conceal_item(item: ViewItem) -> ViewItem:
    match item:
        case SummarizedSpan():
            text = conceal(item.text)
            # A signed block cannot be edited: if it contains a secret, only its text is kept.
            return replace(item, text=text, block=item.block if text == item.text else b"")
        case AlteredMessage():
            return replace(item, edits=tuple(map(_conceal_edit, item.edits)))
        case _:
            return item


def _conceal_edit(edit: Edit) -> Edit:
    if edit.by is None:
        return edit
    concealed = conceal_parts(Message(role="user", parts=(edit.by,)))
    return replace(edit, by=concealed.parts[0])


def _conceal_event(event: Event) -> Event:
    rejected = tuple(map(_conceal_rejected, event.rejected))
    if rejected == event.rejected:
        return event
    match event:
        case Compaction():
            return replace(event, rejected=rejected)
        case Skip():
            return replace(event, rejected=rejected)


def _conceal_rejected(rejected: Rejected) -> Rejected:
    return replace(rejected, first_missing=tuple(map(conceal, rejected.first_missing)))


def _conceal_body(body: bytes) -> bytes:
    return conceal_json(body.decode()).encode() if body else body
