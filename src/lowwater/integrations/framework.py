"""What the integrations share: sessions by conversation, a framework's messages beside ours, and one call of the model."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.entries import Edit
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.refusals import refuses_images
from lowwater.core.ledger import Ledger
from lowwater.core.messages import AnyPart, Format, Image, Message, Role, Text, Thinking, ToolCall
from lowwater.core.reconcile import branch_of
from lowwater.core.strict_json import read_fields, write_json, write_object
from lowwater.core.view import Edited, Summary, items_shown
from lowwater.errors import BadInput, BadSetting
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")
Mark = dict[str, Any]
_MARKS = ("cache_control", "prompt_cache_breakpoint")
_WHOLE = -1
"""The position of what is no piece of a message's content."""


def missing(framework: str, extra: str) -> BadSetting:
    """Return the error that names the extra to install."""
    return BadSetting(f"{framework} is not installed: pip install 'lowwater[{extra}]'")


class Newest(Generic[K, V]):
    """Values by their keys, but only the `most` that were set or asked for last."""

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
        """Return the value of a key, which is among the newest again; None if there is none."""
        if key in self._held:
            self._held.move_to_end(key)
        return self._held.get(key)

    def pop(self, key: K) -> V | None:
        """Return the value of a key, and forget it; None if there is none."""
        return self._held.pop(key, None)


class FrameworkSessions:
    """The sessions of one library that a framework's conversations are kept in.

    The first model that the framework asks is the library's own, however the framework spells its name; when it asks
    another one, the session switches with it, and back.
    """

    def __init__(self, lowwater: Lowwater, *, source: str) -> None:
        self.lowwater = lowwater
        self._source = source
        self._models: dict[str, str] = {}

    def named(self, name: str) -> Session:
        """Return the session with this name; it is told once where its messages come from."""
        session = self.lowwater.session(name)
        if session.about.source != self._source:
            session.describe(source=self._source)
        return session

    def asking(self, name: str, model: str) -> Session:
        """Return the session for a call of this model; an empty name of a model tells nothing."""
        session = self.named(name)
        if model:
            known = self._models.setdefault(model, model if self._models else session.route.model)
            if session.route.model != known:
                session.use(known)
        return session


class Piece(Struct, frozen=True, kw_only=True):
    """One part, and where the framework's message holds it: the positions mean something only to its own module."""

    part: AnyPart
    at: tuple[int, ...] = ()


class Unit(Struct, Generic[S], frozen=True, kw_only=True):
    """What the framework holds, what the ledger gets, and for each part of that where it came from."""

    source: S
    message: Message
    places: tuple[tuple[int, ...], ...]


def unit_of(source: S, role: Role, pieces: Iterable[Piece], format: Format) -> Unit[S]:
    """Return a unit whose message is read again just as it is here once it was written in `format`."""
    said = [piece for piece in pieces if not isinstance(piece.part, Text) or piece.part.text]
    readable = _as_anthropic(said) if format == "anthropic" else _as_chat(said)
    message = Message(role=_role(role, format), parts=tuple(piece.part for piece in readable))
    return Unit(source=source, message=message, places=tuple(piece.at for piece in readable))


def wires_of(units: Sequence[Unit[S]], format: Format) -> list[bytes]:
    """Return the message of every unit as bytes; the same unit gives the same bytes, whatever stands around it."""
    return [wire_of(unit.message, format) for unit in units]


def wire_of(message: Message, format: Format) -> bytes:
    """Return one message as bytes, an empty one included."""
    written = encode_messages([message], format) if message.parts and message.role != "system" else []
    if not written:
        return write_json({"role": message.role, "content": message.text})
    failed = format == "openai_chat" and any(result.is_error for result in message.results)
    return write_object(read_fields(written[0]) | {"is_error": b"true"}) if failed else written[0]


def picture_at(url: str) -> Image:
    """Return the picture behind a URL, or inside of it."""
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return Image(source="base64", data=data, media_type=head.removeprefix("data:"))
    return Image(source="url", data=url)


def format_of(session: Session) -> Format:
    """Return the format in which a session is told its messages: the one it began with, else its model's own."""
    for item in session.ledger.view.items:
        if item.message.wire is not None and item.message.wire.format in ("anthropic", "openai_chat"):
            return item.message.wire.format
    found = load_registry().find(session.route.model)
    return "anthropic" if found.provider == "anthropic" else "openai_chat"


def _role(role: Role, format: Format) -> Role:
    return "user" if format == "anthropic" and role == "tool" else role


def _as_anthropic(pieces: Sequence[Piece]) -> list[Piece]:
    """Thinking that nobody signed has no form there."""
    return [piece for piece in pieces if not isinstance(piece.part, Thinking) or piece.part.signature]


def _as_chat(pieces: Sequence[Piece]) -> list[Piece]:
    """All thinking is one field there, before the content; calls stand behind it."""
    thoughts = [piece for piece in pieces if isinstance(piece.part, Thinking)]
    calls = [piece for piece in pieces if isinstance(piece.part, ToolCall)]
    others = [piece for piece in pieces if not isinstance(piece.part, Thinking | ToolCall)]
    text = "\n".join(
        piece.part.text for piece in thoughts if isinstance(piece.part, Thinking) and piece.part.text
    )
    at = tuple(position for piece in thoughts for position in piece.at)
    thought = [Piece(part=Thinking(text=text), at=at)] if text else []
    return [*thought, *others, *calls]


class Shown(Struct, Generic[S], frozen=True, kw_only=True):
    """One message of the view."""

    message: Message
    source: S | None = None
    """What the framework holds; None for what Lowwater wrote."""
    changes: Mapping[int, str | None] = {}
    """By position in the source: the text that stands there now, or None where it was dropped."""
    calls: Mapping[str, str] = {}
    """By the id of a call: the arguments, as JSON, that it is shown with now."""
    mark: Mark = {}
    """The cache mark for its last block, as a field with its value; empty for none."""

    @property
    def is_changed(self) -> bool:
        """Return whether it differs from its source; what does not is sent as it is."""
        return bool(self.changes or self.calls)


class Sending(Struct, Generic[S], frozen=True, kw_only=True):
    """A request as a framework is to send it."""

    view: list[Shown[S]]
    system_mark: Mark
    """The cache mark for the system prompt; empty for none."""
    request: PreparedRequest

    @property
    def thinking(self) -> Any:  # noqa: ANN401 - as the framework has it
        """Claude's `thinking` as it may be sent with this view; None if it was not given."""
        return self.request.as_anthropic().get("thinking") if self.request.thinking else None

    def is_folded(self, at: int) -> bool:
        """Return whether a message of the view is written into the user message before it."""
        return at in self.request.folds


def sending(request: PreparedRequest, ledger: Ledger, units: Sequence[Unit[S]]) -> Sending[S]:
    """Return a request that was prepared from all `units` of a conversation."""
    known = dict(zip(branch_of(ledger), units, strict=False))
    items = items_shown(request.messages, ledger.view.items)
    marks = _marks(request)
    view: list[Shown[S]] = []
    for at, message in enumerate(request.messages):
        item, mark = items[at], marks.messages.get(at, {})
        unit = None if item is None or isinstance(item, Summary) else known.get(item.number)
        if unit is None:
            view.append(Shown(message=message, mark=mark))
            continue
        edits = item.edits if isinstance(item, Edited) else ()
        changes, calls = dict(_changes(edits, unit)), dict(_calls(edits, unit))
        view.append(Shown(message=message, source=unit.source, changes=changes, calls=calls, mark=mark))
    return Sending(view=view, system_mark=marks.system, request=request)


def _changes(edits: Sequence[Edit], unit: Unit[S]) -> Iterator[tuple[int, str | None]]:
    for edit in edits:
        if isinstance(edit.by, ToolCall):
            continue
        text = edit.by.text if isinstance(edit.by, Text) else None
        if len(edit.path) == 2:
            yield edit.path[1], text
            continue
        first, *rest = unit.places[edit.path[0]] or (_WHOLE,)
        yield first, text
        yield from ((position, None) for position in rest)


def _calls(edits: Sequence[Edit], unit: Unit[S]) -> Iterator[tuple[str, str]]:
    """Return calls with other arguments by their ids in the framework: a call is shortened, never dropped."""
    for edit in edits:
        call = unit.message.parts[edit.path[0]]
        if isinstance(edit.by, ToolCall) and isinstance(call, ToolCall):
            yield call.id, edit.by.arguments


class _Marks(Struct, frozen=True, kw_only=True):
    """Cache marks of a request: that of the system prompt, and those of messages by their place."""

    system: Mark
    messages: dict[int, Mark]


def _marks(request: PreparedRequest) -> _Marks:
    """Return the marks that the request carries in its provider's form, if its messages leave one by one."""
    if request.marks is None:
        return _Marks(system={}, messages={})
    if request.told == "openai_chat" or request.marks.breakpoints or request.marks.in_chat:
        whole = request.as_openai()["messages"]
        first = len(whole) - len(request.lasts)
        system, messages = whole[:first], whole[max(0, first) :]
    else:
        fields = request.as_anthropic()
        system, messages = [{"content": fields.get("system", [])}], fields["messages"]
    if len(messages) != len(request.lasts):
        messages = []
    placed = zip(request.lasts, messages, strict=False)
    found = {at: mark for at, message in placed if (mark := _mark_on(message))}
    return _Marks(system=next(map(_mark_on, system), {}), messages=found)


def _mark_on(message: Mapping[str, Any]) -> Mark:
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return next(({key: block[key]} for block in blocks for key in _MARKS if key in block), {})


class Preamble(Struct, frozen=True, kw_only=True):
    """What a request carries beside its messages, as `prepare` takes it."""

    system: str = ""
    tools: Sequence[object] = ()
    max_tokens: int | None = None
    thinking: object = None
    """Claude's `thinking`, where the framework says it: a compaction may forbid a budget for the rest of a tool loop."""


def begin(session: Session, units: Sequence[Unit[S]], preamble: Preamble) -> Sending[S]:
    """Return what to send for a conversation, compacted only if it pays."""
    wires = wires_of(units, format_of(session))
    request = session.prepare(wires, starts_over=True, **_options(preamble))
    return sending(request, session.ledger, units)


async def abegin(session: Session, units: Sequence[Unit[S]], preamble: Preamble) -> Sending[S]:
    """Do what `begin` does without blocking the event loop."""
    wires = wires_of(units, format_of(session))
    request = await session.aprepare(wires, starts_over=True, **_options(preamble))
    return sending(request, session.ledger, units)


def _options(preamble: Preamble) -> dict[str, Any]:
    return {name: getattr(preamble, name) for name in preamble.__struct_fields__}


class Answered(Struct, frozen=True, kw_only=True):
    """A model's answer as the ledger gets it."""

    message: Message
    usage: Usage | None = None
    """None if the framework does not tell."""
    cache_told: bool = True
    model: str = ""
    stop: str = ""

    def response(self, format: Format) -> bytes:
        """Return it as the provider's API would have answered."""
        wire = wire_of(self.message, format)
        if format == "anthropic":
            return msgspec.json.encode(
                {
                    "role": "assistant",
                    "content": Raw(read_fields(wire)["content"]),
                    "model": self.model,
                    "stop_reason": self.stop,
                    "usage": self.usage and _prepared_anthropic(self.usage),
                }
            )
        choice = {"message": Raw(wire), "finish_reason": self.stop}
        usage = self.usage and _prepared_chat(self.usage, cache_told=self.cache_told)
        return msgspec.json.encode({"choices": [choice], "model": self.model, "usage": usage})


def learns(session: Session, error: Exception) -> bool:
    """Return whether an error taught that the window is smaller than believed, so that the call may be tried once more.

    Where it refuses the images, older ones are dropped.
    """
    if refuses_images(str(error)):
        return session.drop_images()
    believed = session.status().context
    try:
        return session.learn_context_length(error) < believed
    except BadInput:
        return False


def system_of(sent: Sending[S]) -> str:
    """Return the system prompt of a request that was begun with one in words: a policy may have added to it."""
    system = sent.request.system
    return str(msgspec.json.decode(system)) if system else ""


def _prepared_anthropic(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.uncached,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write + usage.cache_write_long,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": usage.cache_write_long,
        },
        "output_tokens": usage.output,
    }


def _prepared_chat(usage: Usage, *, cache_told: bool) -> dict[str, Any]:
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "prompt_tokens_details": details if cache_told else None,
    }
