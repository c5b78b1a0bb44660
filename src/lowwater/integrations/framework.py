"""What the integrations share: sessions by conversation, the mapping between a framework's messages and ours, and one call.

An integration maps its messages (`map_message`), prepares the call (`prepare_call`), writes the view back as messages of the
framework (`OutgoingRequest.view`), and records the answer (`ModelAnswer`).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.entries import Edit
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.refusals import refuses_images
from lowwater.core.formats.usage import anthropic_usage_fields
from lowwater.core.ledger import Ledger
from lowwater.core.messages import AnyPart, Format, Image, Message, Role, Text, Thinking, ToolCall
from lowwater.core.recall.recalled import openai_tools
from lowwater.core.reconcile import branch_of
from lowwater.core.strict_json import read_fields, write_json, write_object
from lowwater.core.view import Edited, Summary, items_shown
from lowwater.errors import BadInput, BadSetting
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")
Mark = dict[str, Any]
_MARKS = ("cache_control", "prompt_cache_breakpoint")
_WHOLE = -1
"""The position of a part that is not inside a message's content."""


@contextmanager
def needing(*packages: str, extra: str = "", otherwise: str) -> Iterator[None]:
    """Import what needs a framework; if one of its packages is missing, raise BadSetting with `otherwise` and the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in packages:
            raise
        raise BadSetting(f"{otherwise}: pip install 'lowwater[{extra}]'" if extra else otherwise) from None


def recall_functions() -> list[dict[str, Any]]:
    """Return name, description and parameters of each recall tool."""
    return [tool["function"] for tool in openai_tools()]


def function_tool(name: str, description: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as a chat request lists it."""
    function = {"name": name, "description": description or "", "parameters": parameters}
    return {"type": "function", "function": function}


class LruCache(Generic[K, V]):
    """A mapping that keeps only the `most` keys used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def __setitem__(self, key: K, value: V) -> None:
        self._held[key] = value
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)

    def get(self, key: K) -> V | None:
        """Return the value of a key and mark the key as used; None if there is none."""
        if key in self._held:
            self._held.move_to_end(key)
        return self._held.get(key)

    def pop(self, key: K) -> V | None:
        """Remove a key and return its value; None if there is none."""
        return self._held.pop(key, None)


class FrameworkSessions:
    """The sessions of one library, for the conversations of a framework.

    The first model that the framework calls is taken to be the library's own, however the framework spells its name; when it
    calls another one, the session switches with it, and back.
    """

    def __init__(self, lowwater: Lowwater, *, source: str) -> None:
        self.lowwater = lowwater
        self._source = source
        self._models: dict[str, str] = {}

    def session(self, name: str) -> Session:
        """Return the session with this name, with the framework set as its source."""
        session = self.lowwater.session(name)
        if internals(session).about.source != self._source:
            internals(session).describe(source=self._source)
        return session

    def session_for_model(self, name: str, model: str) -> Session:
        """Return the session for a call of `model`; if that is empty, the session keeps its model."""
        session = self.session(name)
        if model:
            known = self._models.setdefault(model, model if self._models else internals(session).route.model)
            if internals(session).route.model != known:
                session.use(known)
        return session


class SourcePart(Struct, frozen=True, kw_only=True):
    """One part, and its position in the framework's message; what a position means is up to the integration."""

    part: AnyPart
    at: tuple[int, ...] = ()


class MappedMessage(Struct, Generic[S], frozen=True, kw_only=True):
    """A message of the framework, the message that the ledger gets for it, and the origin of each part."""

    source: S
    message: Message
    places: tuple[tuple[int, ...], ...]


def map_message(source: S, role: Role, pieces: Iterable[SourcePart], format: Format) -> MappedMessage[S]:
    """Return the mapping for a message; only parts that survive being written in `format` and read again are kept."""
    pieces = [piece for piece in pieces if not isinstance(piece.part, Text) or piece.part.text]
    readable = _as_anthropic(pieces) if format == "anthropic" else _as_chat(pieces)
    message = Message(role=_role(role, format), parts=tuple(piece.part for piece in readable))
    return MappedMessage(source=source, message=message, places=tuple(piece.at for piece in readable))


def encode_mapped(conversation: Sequence[MappedMessage[S]], format: Format) -> list[bytes]:
    """Return every message as bytes; equal messages give equal bytes, whatever is around them."""
    return [encode_message(mapped.message, format) for mapped in conversation]


def encode_message(message: Message, format: Format) -> bytes:
    """Return one message as bytes, even an empty one."""
    written = encode_messages([message], format) if message.parts and message.role != "system" else []
    if not written:
        return write_json({"role": message.role, "content": message.text})
    failed = format == "openai_chat" and any(result.is_error for result in message.results)
    return write_object(read_fields(written[0]) | {"is_error": b"true"}) if failed else written[0]


def image_from_url(url: str) -> Image:
    """Return the image at a URL; a data URL contains it."""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return Image(source="base64", data=data, media_type=head.removeprefix("data:"))
    return Image(source="url", data=url)


def session_format(session: Session) -> Format:
    """Return the format of a session's messages: the one it began with, or else its model's own."""
    for item in internals(session).ledger.view.items:
        if item.message.wire is not None and item.message.wire.format in ("anthropic", "openai_chat"):
            return item.message.wire.format
    found = load_registry().find(internals(session).route.model)
    return "anthropic" if found.provider == "anthropic" else "openai_chat"


def _role(role: Role, format: Format) -> Role:
    return "user" if format == "anthropic" and role == "tool" else role


def _as_anthropic(pieces: Sequence[SourcePart]) -> list[SourcePart]:
    """Return the parts without unsigned thinking, which Anthropic's format cannot express."""
    return [piece for piece in pieces if not isinstance(piece.part, Thinking) or piece.part.signature]


def _as_chat(pieces: Sequence[SourcePart]) -> list[SourcePart]:
    """Return the parts in the order of the chat format: all thinking as one field, then the content, then the calls."""
    reasoning = [piece for piece in pieces if isinstance(piece.part, Thinking)]
    calls = [piece for piece in pieces if isinstance(piece.part, ToolCall)]
    others = [piece for piece in pieces if not isinstance(piece.part, Thinking | ToolCall)]
    text = "\n".join(
        piece.part.text for piece in reasoning if isinstance(piece.part, Thinking) and piece.part.text
    )
    at = tuple(position for piece in reasoning for position in piece.at)
    thinking = [SourcePart(part=Thinking(text=text), at=at)] if text else []
    return [*thinking, *others, *calls]


class ViewMessage(Struct, Generic[S], frozen=True, kw_only=True):
    """One message of the view, to be written as a message of the framework."""

    message: Message
    source: S | None = None
    """The framework's own message; None for one that Lowwater wrote."""
    changes: Mapping[int, str | None] = {}
    """By position in the source: the text that replaces the part, or None if it was dropped."""
    calls: Mapping[str, str] = {}
    """By the id of a call: the arguments, as JSON, that replace its own."""
    mark: Mark = {}
    """The cache mark for its last block, as a field with its value; empty for none."""

    @property
    def is_changed(self) -> bool:
        """Whether it differs from its source, which is sent as it is otherwise."""
        return bool(self.changes or self.calls)


class OutgoingRequest(Struct, Generic[S], frozen=True, kw_only=True):
    """A prepared request in terms of the framework's messages."""

    view: list[ViewMessage[S]]
    system_mark: Mark
    """The cache mark for the system prompt; empty for none."""
    request: PreparedRequest

    @property
    def thinking(self) -> Any:  # noqa: ANN401 - as the framework has it
        """Claude's `thinking` field as it may be sent with this view; None if none was given."""
        return self.request.as_anthropic().get("thinking") if self.request.thinking else None

    def is_folded(self, at: int) -> bool:
        """Return whether the message at this place is merged into the user message before it."""
        return at in self.request.merged_indexes


def outgoing_request(
    request: PreparedRequest, ledger: Ledger, conversation: Sequence[MappedMessage[S]]
) -> OutgoingRequest[S]:
    """Return a request that was prepared from all messages of a conversation in terms of these messages."""
    known = dict(zip(branch_of(ledger), conversation, strict=False))
    items = items_shown(request.messages, ledger.view.items)
    marks = _marks(request)
    view: list[ViewMessage[S]] = []
    for at, message in enumerate(request.messages):
        item, mark = items[at], marks.messages.get(at, {})
        mapped = None if item is None or isinstance(item, Summary) else known.get(item.number)
        if mapped is None:
            view.append(ViewMessage(message=message, mark=mark))
            continue
        edits = item.edits if isinstance(item, Edited) else ()
        changes, calls = dict(_changes(edits, mapped)), dict(_calls(edits, mapped))
        view.append(
            ViewMessage(message=message, source=mapped.source, changes=changes, calls=calls, mark=mark)
        )
    return OutgoingRequest(view=view, system_mark=marks.system, request=request)


def _changes(edits: Sequence[Edit], mapped: MappedMessage[S]) -> Iterator[tuple[int, str | None]]:
    for edit in edits:
        if isinstance(edit.by, ToolCall):
            continue
        text = edit.by.text if isinstance(edit.by, Text) else None
        if len(edit.path) == 2:
            yield edit.path[1], text
            continue
        first, *rest = mapped.places[edit.path[0]] or (_WHOLE,)
        yield first, text
        yield from ((position, None) for position in rest)


def _calls(edits: Sequence[Edit], mapped: MappedMessage[S]) -> Iterator[tuple[str, str]]:
    """Yield the calls whose arguments were replaced, with their ids: a call is shortened, never dropped."""
    for edit in edits:
        call = mapped.message.parts[edit.path[0]]
        if isinstance(edit.by, ToolCall) and isinstance(call, ToolCall):
            yield call.id, edit.by.arguments


class _Marks(Struct, frozen=True, kw_only=True):
    """Cache marks of a request: on the system prompt, and on messages by their place."""

    system: Mark
    messages: dict[int, Mark]


def _marks(request: PreparedRequest) -> _Marks:
    """Return the marks that a request has in its provider's format; none if messages were merged, as places would not match."""
    if request.marks is None:
        return _Marks(system={}, messages={})
    if request.detected_format == "openai_chat" or request.marks.breakpoints or request.marks.in_chat:
        whole = request.as_openai()["messages"]
        first = len(whole) - len(request.last_indexes)
        system, messages = whole[:first], whole[max(0, first) :]
    else:
        fields = request.as_anthropic()
        system, messages = [{"content": fields.get("system", [])}], fields["messages"]
    if len(messages) != len(request.last_indexes):
        messages = []
    placed = zip(request.last_indexes, messages, strict=False)
    found = {at: mark for at, message in placed if (mark := _mark_on(message))}
    return _Marks(system=next(map(_mark_on, system), {}), messages=found)


def _mark_on(message: Mapping[str, Any]) -> Mark:
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return next(({key: block[key]} for block in blocks for key in _MARKS if key in block), {})


class RequestPreamble(Struct, frozen=True, kw_only=True):
    """What a request has besides its messages, as options of `Session.prepare`."""

    system: str = ""
    tools: Sequence[object] = ()
    max_tokens: int | None = None
    thinking: object = None
    """Claude's `thinking` field, if the framework has it: after a compaction it may be invalid for the rest of a tool loop."""


def prepare_call(
    session: Session, conversation: Sequence[MappedMessage[S]], preamble: RequestPreamble
) -> OutgoingRequest[S]:
    """Prepare a call: return what to send for a conversation, compacted only if that pays."""
    wires = encode_mapped(conversation, session_format(session))
    request = session.prepare(wires, starts_over=True, **_options(preamble))
    return outgoing_request(request, internals(session).ledger, conversation)


async def aprepare_call(
    session: Session, conversation: Sequence[MappedMessage[S]], preamble: RequestPreamble
) -> OutgoingRequest[S]:
    """Do what `prepare_call` does without blocking the event loop."""
    wires = encode_mapped(conversation, session_format(session))
    request = await session.aprepare(wires, starts_over=True, **_options(preamble))
    return outgoing_request(request, internals(session).ledger, conversation)


def _options(preamble: RequestPreamble) -> dict[str, Any]:
    return {name: getattr(preamble, name) for name in preamble.__struct_fields__}


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """A model's answer, as the session records it."""

    message: Message
    usage: Usage | None = None
    """None if the framework does not report it."""
    reports_cache: bool = True
    splits_writes: bool = True
    """Whether the framework says for which lifetime each part was written to the cache."""
    model: str = ""
    stop: str = ""

    def response(self, format: Format) -> bytes:
        """Return the answer in the form of the provider's API."""
        wire = encode_message(self.message, format)
        if format == "anthropic":
            figures = self.usage and anthropic_usage_fields(self.usage)
            if figures and not self.splits_writes:
                del figures["cache_creation"]
            return msgspec.json.encode(
                {
                    "role": "assistant",
                    "content": Raw(read_fields(wire)["content"]),
                    "model": self.model,
                    "stop_reason": self.stop,
                    "usage": figures,
                }
            )
        choice = {"message": Raw(wire), "finish_reason": self.stop}
        usage = self.usage and _chat_usage(self.usage, reports_cache=self.reports_cache)
        return msgspec.json.encode({"choices": [choice], "model": self.model, "usage": usage})


def with_changes(
    blocks: Iterable[V], changes: Mapping[int, str | None], written: Callable[[str], V]
) -> Iterator[V]:
    """Yield blocks by their places: as they are, replaced by what is `written` for a text, or not at all."""
    for at, block in enumerate(blocks):
        text = changes.get(at)
        if text is not None:
            yield written(text)
        elif at not in changes:
            yield block


def answer_for(session: Session, read: Callable[[S, Format], ModelAnswer], answer: S) -> bytes:
    """Return an answer of the framework in the format of a session, for it to record."""
    format = session_format(session)
    return read(answer, format).response(format)


def learn_limit(session: Session, error: Exception) -> bool:
    """Learn from a provider's refusal; return whether the next request will be smaller, so that a retry makes sense.

    The context length is corrected; if the images were refused, older ones are dropped.
    """
    if refuses_images(str(error)):
        return internals(session).drop_images()
    believed = session.status().context
    try:
        return session.learn_context_length(error) < believed
    except BadInput:
        return False


def system_of(sent: OutgoingRequest[S]) -> str:
    """Return the system prompt as text; a policy may have added to the one that was given."""
    system = sent.request.system
    return str(msgspec.json.decode(system)) if system else ""


def _chat_usage(usage: Usage, *, reports_cache: bool) -> dict[str, Any]:
    written = usage.cache_write + usage.cache_write_long
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": written}
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "prompt_tokens_details": details if reports_cache else None,
    }
