"""The arguments of a call to a session or the library: checked, and messages read in their format."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec
from msgspec import Raw, Struct

from lowwater.core.formats.codec import decode_messages, detect_format, encode_messages, raw_messages, reread
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Format, Message
from lowwater.core.models.registry import NO_PRICE, Registry
from lowwater.core.reconcile import says_the_same
from lowwater.core.strict_json import read_plain, write_json
from lowwater.core.tools import offers_recall
from lowwater.core.turns.arrival import Incoming
from lowwater.core.turns.effects import Steps
from lowwater.core.turns.state import Setup, State
from lowwater.core.turns.turn import Prepared, prepare
from lowwater.errors import BadInput, BadSetting, MalformedMessage
from lowwater.protocols import Clock
from lowwater.settings import Settings
from lowwater.settings.coercion import did_you_mean, shown
from lowwater.settings.resolve import settings_in

_KINDS = {b'"': "text", b"[": "list", b"{": "mapping", b"n": "null"}


class ReadMessages(Struct, frozen=True, kw_only=True):
    """Messages, the format they were read in, and the format detected from them; None if they read the same in every format."""

    messages: tuple[Message, ...]
    format: Format
    detected_format: Format | None


class TurnInput(Struct, frozen=True, kw_only=True):
    """The arguments of one call of `prepare`."""

    messages: Sequence[object] | None = None
    system: object = None
    tools: Sequence[object] | None = None
    max_tokens: int | None = None
    offers_recall: bool = False
    thinking: object = None
    tool_choice: object = None
    starts_over: bool = False
    """Whether messages that have nothing in common with the session may replace its history."""

    def incoming(self, state: State) -> Incoming:
        """Return the arguments as values for the core, or raise BadInput for a mistake."""
        read = None if self.messages is None else read_messages(self.messages, state)
        if read is not None and not self.starts_over:
            _refuse_fragment(read.messages, state.ledger)
        tools = None if self.tools is None else require_objects(self.tools, "tools", each="one for each tool")
        if self.max_tokens is not None:
            require_count(self.max_tokens, "max_tokens")
        offered = state.ledger.view.tools if tools is None else tools
        return Incoming(
            messages=None if read is None else read.messages,
            format=None if read is None else read.detected_format,
            assumed=None if read is None else read.format,
            system=None if self.system is None else _system(self.system),
            tools=tools,
            max_tokens=self.max_tokens,
            offers_recall=self.offers_recall or bool(offered and offers_recall(offered)),
            parameters=self.thinking_json + b"\0" + self.tool_choice_json,
        )

    @property
    def thinking_json(self) -> bytes:
        """`thinking` as JSON, empty if it was not given."""
        return b"" if self.thinking is None else require_json(self.thinking, "thinking", "mapping")

    @property
    def tool_choice_json(self) -> bytes:
        """`tool_choice` as JSON, empty if it was not given."""
        choice = self.tool_choice
        return b"" if choice is None else require_json(choice, "tool_choice", "text", "mapping")

    def turn(self, state: State, setup: Setup, at: float) -> Steps[Prepared]:
        """Return the turn that prepares them for sending; what could not be sent is refused before it is kept."""
        prepared = yield from prepare(state, self.incoming(state), setup, at)
        refuse_unsendable(state, prepared.state)
        return prepared


def _system(system: object) -> bytes:
    """Return a system prompt as JSON: text, or a list of text blocks."""
    written = require_json(system, "system", "text", "list")
    if written.startswith(b'"'):
        return written
    return require_objects(system, "system", each='one for each block, such as {"type": "text", "text": "…"}')


def _refuse_fragment(messages: Sequence[Message], ledger: Ledger) -> None:
    """Raise BadInput for a list of new messages only: taken as the client's whole list it would drop the history.

    Such a list has no answer of the model, and begins neither like the view nor like the history.
    """
    if any(message.role == "assistant" for message in messages):
        return
    held, given = _spoken(ledger.view.messages), _spoken(messages)
    if not given or not any(message.role == "assistant" for message in held):
        return
    if says_the_same(held[0], given[0]):
        return
    first = min(ledger.view.shown_numbers())
    if any(says_the_same(each.message, given[0]) for each in ledger.messages[first - 1 : first + 1]):
        return
    raise BadInput(
        f"prepare takes the whole conversation, and the {len(given)} given here continue none of the "
        f"{len(held)} messages in view: give the whole list; or append() what is new and call "
        "prepare() without messages; or say starts_over=True to begin anew"
    )


def _spoken(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.role not in {"system", "developer"}]


def read_messages(messages: object, state: State) -> ReadMessages:
    """Read one message or several in the format detected from them, else the session's, else that of the model's provider."""
    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        messages = (messages,)
    raws = raw_messages(messages)
    told = detect_format(raws)
    format = told or format_of_session(state)
    return ReadMessages(messages=tuple(decode_messages(raws, format)), format=format, detected_format=told)


def format_of_session(state: State) -> Format:
    """Return the format of a session: the one detected from its messages, or that of the model's provider."""
    native: Format = "anthropic" if state.model.provider == "anthropic" else "openai_chat"
    return state.format or native


def refuse_unsendable(before: State, after: State) -> None:
    """Raise MalformedMessage if a new message could not be sent, or shown, in the session's format.

    What is in the ledger is there for good, so this is checked before anything is stored.
    """
    known = len(before.ledger.messages)
    for index, numbered in enumerate(after.ledger.messages[known:]):
        try:
            written_messages([numbered.message], after)
        except (BadInput, ValueError, RecursionError) as error:
            raise MalformedMessage(index, f"it cannot be sent to a provider ({error})") from None


def written_messages(messages: Sequence[Message], state: State) -> list[Any]:
    """Return messages as Python objects in the session's format."""
    format = format_of_session(state)
    raws = encode_messages(reread(messages, assumed=state.assumed_format, format=format), format)
    return [read_plain(raw) for raw in raws]


def settings_given(given: object) -> Settings:
    """Return settings given as such or, as in lowwater.yaml, as a mapping of sections; none given are the defaults."""
    if given is None:
        return Settings()
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise BadSetting(f"settings must be a Settings object or a mapping of sections, not {_shown(given)}")
    settings_in(given, place=lambda path: f"settings {path}".strip())
    return Settings(**{name: section for name, section in given.items() if section is not None})


def doubts_about(model: str, registry: Registry, *, base_url: str = "") -> str:
    """Return a warning about a model's name that is probably a mistake, because no price is known for it; else empty.

    A model at the caller's own URL may well have no price; it is doubted only if its name is nearly a known one.
    """
    match = registry.match(model)
    if NO_PRICE not in match.model.assumptions:
        return ""
    known = [name for each in registry.models for name in (each.name, *each.aliases)]
    hint = did_you_mean(match.spelling.name, known)
    if base_url and not hint:
        return ""
    return f"no price is known for the model {shown(model)}, so there will be no dollar figures{hint}"


class CheckedClock:
    """A caller's clock with its time checked: cache lifetimes are computed from a finite number of seconds."""

    def __init__(self, clock: Clock) -> None:
        if not callable(getattr(clock, "now", None)):
            raise BadSetting(f"a {type(clock).__name__} is no clock: it needs a method `now`")
        self._now: Callable[[], float] = clock.now

    def now(self) -> float:
        """Return seconds since the epoch, or raise BadSetting."""
        at = self._now()
        if isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at):
            raise BadSetting(f"the clock must give seconds since 1970 as a finite number, not {_shown(at)}")
        return at


def require_text(value: object, name: str) -> str:
    """Return `value` if it is text and not blank; else raise BadInput."""
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{name} must be text, not {_shown(value)}")
    return value


def require_count(value: object, name: str, *, least: int = 1) -> int:
    """Return `value` if it is a whole number of at least `least`; else raise BadInput."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadInput(f"{name} must be a whole number of at least {least}, not {_shown(value)}")
    return value


def require_place(value: object, name: str) -> str | int:
    """Return `value` if it can name a checkpoint or a ledger position; else raise BadInput."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a checkpoint's name or a ledger position, not {_shown(value)}")
    return value


def require_list(value: object, name: str, *, of: str) -> None:
    """Raise BadSetting unless `value` is a list or another iterable; a single text is a common mistake for one."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise BadSetting(f"{name} must be a list of {of}, not {_shown(value)}")


def require_methods(values: Iterable[object], name: str, *, method: str) -> None:
    """Raise BadSetting unless each of `values` has `method`."""
    for value in values:
        if not callable(getattr(value, method, None)):
            raise BadSetting(f"each of {name} needs a method `{method}`, and {_shown(value)} has none")


def require_json(value: object, name: str, *kinds: str) -> bytes:
    """Return `value` as JSON if that is one of `kinds` (text, list, mapping); else raise BadInput."""
    written = write_json(value)
    if _KINDS.get(written[:1]) not in kinds:
        raise BadInput(f"{name} must be {_one_of(kinds)}, not {_shown(value)}")
    return written


def require_objects(value: object, name: str, *, each: str) -> bytes:
    """Return `value` as JSON if that is a list of objects; else raise BadInput."""
    written = require_json(value, name, "list")
    try:
        msgspec.json.decode(written, type=list[dict[str, Raw]])
    except msgspec.ValidationError:
        raise BadInput(f"{name} must be a list of objects, {each}") from None
    return written


def _shown(value: object) -> str:
    """Return `value` in short form, text in quotes, so that "100" is not taken for 100."""
    return repr(shown(value)) if isinstance(value, str) else shown(value)


def _one_of(kinds: tuple[str, ...]) -> str:
    named = {"text": "text", "list": "a list", "mapping": "a mapping"}
    return " or ".join(named[kind] for kind in kinds)
