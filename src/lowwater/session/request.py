"""The request that a session hands its user to send: the view in each provider's form, marked for its cache."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.marks import NOWHERE, Marks, Seams, cache_key_for, place_marks, seams_of
from lowwater.core.decisions import Decision
from lowwater.core.entries import Retracted, Rewound
from lowwater.core.formats.anthropic import betas_for, dropping, thinking_for
from lowwater.core.formats.cache_marks import (
    break_item,
    break_message,
    carries_break,
    carries_chat_mark,
    carries_item_break,
    carries_mark,
    count_blocks,
    count_item_blocks,
    mark_chat_message,
    mark_content,
    mark_message,
    mark_tools,
    unbreak_item,
    unbreak_message,
    unmark_content,
    unmark_message,
)
from lowwater.core.formats.codec import encode_messages, reread
from lowwater.core.formats.convert import tools_as
from lowwater.core.ledger import Ledger
from lowwater.core.legality import begun_by_user, mend
from lowwater.core.mechanisms.native import sent_from
from lowwater.core.messages import Format, Message, Text, newest_block
from lowwater.core.strict_json import read_plain, write_json
from lowwater.core.summary.request import CachedPrefix
from lowwater.core.turns.cache import marks_of, prompt_layout, warmth_of
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import Summary, join_neighbours, neighbours_to_join
from lowwater.session.turn_input import TurnInput

MOST_MARKS = 4
"""What Anthropic's API takes; at OpenAI the server's own mark is one of four."""

_MARK = b'"cache_control"'


class Marked(Struct, frozen=True, kw_only=True):
    """The parts of a request that carry marks."""

    messages: list[bytes]
    system: bytes
    tools: bytes


def with_marks(raws: Sequence[bytes], system: bytes, tools: bytes, *, marks: Marks, seams: Seams) -> Marked:
    """Return an Anthropic request with our marks instead of the client's.

    The mark before the messages stands on the system prompt, which covers the tools too; on the last tool where there is
    no system prompt, or one that keeps changing.
    """
    bare, system, tools = [unmark_message(raw) for raw in raws], unmark_content(system), unmark_content(tools)
    marked_system = mark_content(system, marks.ttl)
    marked_tools = mark_tools(tools, marks.ttl) if marked_system is None or seams.system_moves else None
    places = place_marks(
        [count_blocks(raw) for raw in bare],
        seams=seams,
        most=MOST_MARKS - (marked_system is not None or marked_tools is not None),
        lookback=marks.lookback,
        carries=lambda at: carries_mark(bare[at]),
    )
    for at in places:
        bare[at] = mark_message(bare[at], marks.ttl)
    if marked_tools is not None:
        return Marked(messages=bare, system=system, tools=marked_tools)
    return Marked(messages=bare, system=marked_system or system, tools=tools)


def with_chat_marks(raws: Sequence[bytes], *, first: int, marks: Marks, seams: Seams) -> list[bytes]:
    """Return chat messages with Anthropic's marks, on texts and where the router looks; the first `first` are the system prompt."""
    bare = [unmark_message(raw) for raw in raws]
    places = place_marks(
        [count_blocks(raw) for raw in bare[first:]],
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages,
        lookback=marks.lookback,
        carries=lambda at: carries_chat_mark(bare[first + at], on_tools=marks.on_tools),
    )
    for at in (*range(first), *(first + place for place in places)):
        bare[at] = mark_chat_message(bare[at], marks.ttl, on_tools=marks.on_tools)
    return bare


def with_breakpoints(raws: Sequence[bytes], *, first: int, marks: Marks, seams: Seams) -> list[bytes]:
    """Return chat messages with OpenAI's breakpoints: one on the system prompt, the others on messages, three in all.

    The fourth is the server's own. Stored ones are found without a mark at their place, so that none is spent on that.
    """
    bare = [unbreak_message(raw) for raw in raws]
    preamble = [at for at in range(first) if carries_break(bare[at])]
    places = place_marks(
        [count_blocks(raw) for raw in bare[first:]],
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages + 1 - len(preamble),
        lookback=marks.lookback,
        carries=lambda at: carries_break(bare[first + at]),
    )
    for at in (*preamble, *(first + place for place in places)):
        bare[at] = break_message(bare[at])
    return bare


def with_item_breakpoints(raws: Sequence[bytes], *, first: int, marks: Marks, seams: Seams) -> list[bytes]:
    """Return Responses items with OpenAI's breakpoints, as `with_breakpoints` puts them on chat messages.

    Instructions that stand apart from the items can carry none; items of the model cannot either.
    """
    bare = [unbreak_item(raw) for raw in raws]
    preamble = [at for at in range(first) if carries_item_break(bare[at])]
    places = place_marks(
        [count_item_blocks(raw) for raw in bare[first:]],
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages + 1 - len(preamble),
        lookback=marks.lookback,
        carries=lambda at: carries_item_break(bare[first + at]),
    )
    for at in (*preamble, *(first + place for place in places)):
        bare[at] = break_item(bare[at])
    return bare


def with_marks_left(raws: Sequence[bytes], system: bytes, tools: bytes) -> list[bytes]:
    """Return messages with the client's own marks, less the first ones if a repeated message made them too many."""
    over = sum(part.count(_MARK) for part in (system, tools, *raws)) - MOST_MARKS
    kept: list[bytes] = []
    for raw in raws:
        kept.append(unmark_message(raw) if over > 0 else raw)
        over -= raw.count(_MARK)
    return kept


_NOTHING = frozenset({b"", b"[]", b'""', b"null"})
_INSTRUCTIONS = frozenset({"system", "developer"})


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request ready to be sent; pass it on with `**request.as_anthropic()`, `as_openai()` or `as_responses()`."""

    messages: tuple[Message, ...]
    told: Format | None = None
    """The format that one of the messages told; None if they read the same in all."""
    assumed: Format | None = None
    """The format in which they were read before one did."""
    system: bytes = b""
    tools: bytes = b""
    thinking: bytes = b""
    """The request's `thinking` at Anthropic, if it was given to `prepare`."""
    tool_choice: bytes = b""
    """The request's `tool_choice`, if it was given to `prepare`."""
    marks: Marks | None = None
    """Which cache marks the provider takes; None where it takes none."""
    seams: Seams = NOWHERE
    """By what the marks are placed; without it they are those of `system_and_3` (docs/specification.md: F)."""
    cache_key: str = ""
    """What OpenAI routes requests of one conversation by, so that they find its cache; empty where it takes none."""
    tokens: int = 0
    """The size of the prompt, in the model's tokens, as far as can be told before sending."""
    decision: Decision | None = None
    whole: bool = False
    """Whether it shows every message of the client's list as it came."""
    folds: tuple[int, ...] = ()
    """The messages that are written into the user message before them, so that no two of ours stand in a row."""

    def as_anthropic(self) -> dict[str, Any]:
        """Return `messages`, and what else there is of the request, for the Anthropic SDK or API."""
        system, messages = self._split(self._read_as("anthropic"))
        raws = encode_messages(begun_by_user(messages[sent_from(messages) :]), "anthropic")
        tools = tools_as(self.tools, "anthropic")
        if self.marks is not None and not self.marks.breakpoints:
            seams = self.seams_in("anthropic", count=len(raws))
            marked = with_marks(raws, system, tools, marks=self.marks, seams=seams)
            raws, system, tools = marked.messages, marked.system, marked.tools
        else:
            raws = with_marks_left(raws, system, tools)
        thinking = thinking_for(self.thinking, raws) if self.thinking else b""
        return _fields(raws, system=system, tools=tools, tool_choice=self.tool_choice, thinking=thinking)

    @property
    def betas(self) -> tuple[str, ...]:
        """Anthropic's betas that a call needs: give them to `client.beta.messages.create(betas=…)`, or in `anthropic-beta`."""
        holding = [message for message in self.messages if newest_block([message]) is not None]
        return betas_for(encode_messages(holding, "anthropic"), self.thinking)

    def as_openai(self, *, cache_key: bool = True) -> dict[str, Any]:
        """Return `messages`, and `tools` where there are any, for the OpenAI SDK or a compatible API.

        For OpenAI's own models there is a `prompt_cache_key` too, unless `cache_key` is False: pass that to give your own.
        """
        messages = self._with_system(self._read_as("openai_chat"))
        raws = encode_messages(messages, "openai_chat")
        first = 1 if messages and messages[0].role in _INSTRUCTIONS else 0
        if self.marks is not None and (self.marks.breakpoints or self.marks.in_chat):
            put = with_breakpoints if self.marks.breakpoints else with_chat_marks
            raws = put(
                raws, first=first, marks=self.marks, seams=self.seams_in("openai_chat", count=len(raws))
            )
        fields = _fields(raws, tools=tools_as(self.tools, "openai_chat"), tool_choice=self.tool_choice)
        return fields | ({"prompt_cache_key": self.cache_key} if self.cache_key and cache_key else {})

    def as_responses(self, *, cache_key: bool = True) -> dict[str, Any]:
        """Return `input`, and `instructions` and `tools` where there are any, for the Responses API.

        An answer's items stand as they came, whichever message they are part of. For OpenAI's own models there is a
        `prompt_cache_key` too, unless `cache_key` is False.
        """
        messages = self._read_as("openai_responses")
        raws = encode_messages(messages, "openai_responses")
        if self.marks is not None and self.marks.breakpoints:
            first = 1 if messages and messages[0].role in _INSTRUCTIONS else 0
            seams = self.seams_in("openai_responses", count=len(raws))
            raws = with_item_breakpoints(raws, first=first, marks=self.marks, seams=seams)
        instructions = b"" if self.system in _NOTHING else _as_text(self.system)
        fields = _fields(
            raws,
            listed="input",
            instructions=instructions,
            tools=tools_as(self.tools, "openai_responses"),
            tool_choice=self.tool_choice,
        )
        return fields | ({"prompt_cache_key": self.cache_key} if self.cache_key and cache_key else {})

    @property
    def joined(self) -> list[Message]:
        """The messages as they are written, those that are folded into another in their place."""
        return join_neighbours(self.messages, self.folds)

    @property
    def lasts(self) -> list[int]:
        """For each message that is written, the index of the last of `messages` in it."""
        return [at for at in range(len(self.messages)) if at + 1 not in self.folds]

    def _read_as(self, format: Format, *, upto: int | None = None) -> list[Message]:
        read = reread(self.messages[:upto], assumed=self.assumed, format=self.told or format)
        if format == "openai_responses":
            # What reads the same in both of OpenAI's formats counts as chat until an item says otherwise.
            read = reread(read, assumed="openai_chat", format=format)
        return join_neighbours(read, self.folds)

    def _split(self, messages: Sequence[Message]) -> tuple[bytes, list[Message]]:
        """Return the system prompt and the messages as Anthropic wants them: apart.

        Only a system message that came in Anthropic's own format and stands right behind the user may stay in the list.
        """
        apart = [
            message.role in _INSTRUCTIONS and not _may_stay(messages[:at], message)
            for at, message in enumerate(messages)
        ]
        if not any(apart):
            return self.system, list(messages)
        told = [message.text for message, is_apart in zip(messages, apart, strict=True) if is_apart]
        others = [message for message, is_apart in zip(messages, apart, strict=True) if not is_apart]
        texts = [_text_of(self.system) if self.system not in _NOTHING else "", *told]
        said = "\n\n".join(text for text in texts if text)
        return (write_json(said) if said else b""), others

    def _with_system(self, messages: list[Message]) -> list[Message]:
        return messages if self.system in _NOTHING else [_system_message(self.system), *messages]

    def seams_in(self, format: Format, *, count: int) -> Seams:
        """Return the seams as places among the `count` encoded messages, of which there may be more or fewer."""
        if (count == len(self.messages) and not self.folds) or self.seams == NOWHERE:
            return self.seams
        messages = self._read_as(format)

        def place(at: int) -> int:
            before = self._read_as(format, upto=at + 1)
            if format == "openai_responses":
                return len(encode_messages(before, format)) - 1
            if format == "openai_chat":
                return len(encode_messages(self._with_system(before), format)) - 1
            left_out = sent_from(self._split(messages)[1])
            return len(encode_messages(begun_by_user(self._split(before)[1][left_out:]), format)) - 1

        return self.seams.moved(place)


def _fields(raws: Sequence[bytes], *, listed: str = "messages", **others: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {listed: [read_plain(raw) for raw in raws]}
    return fields | {name: read_plain(value) for name, value in others.items() if value not in _NOTHING}


def _may_stay(before: Sequence[Message], message: Message) -> bool:
    """Return whether a system message is one of Anthropic's, which stand within a conversation, right behind the user."""
    is_own = message.wire is not None and message.wire.format == "anthropic"
    return is_own and bool(before) and before[-1].role == "user"


def _system_message(system: bytes) -> Message:
    return Message(role="system", parts=(Text(text=_text_of(system)),))


def _as_text(system: bytes) -> bytes:
    """Return a system prompt as one text; one that is a text already stays byte for byte."""
    return system if system.lstrip()[:1] == b'"' else write_json(_text_of(system))


def _text_of(system: bytes) -> str:
    value = msgspec.json.decode(system)
    return value if isinstance(value, str) else "\n\n".join(block.get("text", "") for block in value)


class LastSent(Struct, frozen=True, kw_only=True):
    """A request as it was handed out, for a model as the user spells it, and the ledger at that moment."""

    request: PreparedRequest
    model: str
    ledger: Ledger
    body: bytes = b""
    """The very bytes that were sent, where somebody told; its own writing of them otherwise."""

    def riding(self, ledger: Ledger, format: Format) -> CachedPrefix | None:
        """Return it as it went out, with what came after it; None if the conversation went back since."""
        later = ledger.entries[len(self.ledger.entries) :]
        if any(isinstance(entry, Rewound | Retracted) for entry in later):
            return None
        sent = len(self.ledger.messages)
        # As the view shows them: what was shortened at the door is shorter than the ledger's.
        since = [
            item.message for item in ledger.view.items if not isinstance(item, Summary) and item.number > sent
        ]
        return CachedPrefix(
            format=format,
            body=self.body or write_json({"model": self.model, **self._fields(format)}),
            since=tuple(since),
        )

    def _fields(self, format: Format) -> dict[str, Any]:
        match format:
            case "anthropic":
                return self.request.as_anthropic()
            case "openai_chat":
                return self.request.as_openai()
            case "openai_responses":
                return self.request.as_responses()


def compacting(state: State, ledger: Ledger, upto: int, setup: Setup, at: float) -> CachedPrefix:
    """Return the request that ends behind the first `upto` items of a view, as it is sent: what a provider is to compact.

    It is marked at its end, where an earlier request of the session ended or nearly so: there the cache is read. Where
    nothing is cached it has no marks, for what they would have written is about to be replaced.
    """
    view, layout = ledger.view, prompt_layout(replace(state, ledger=ledger), setup).layout
    warm = warmth_of(state, layout, at).hit() > 0
    messages = tuple(mend(view.messages[:upto]))
    thinking, _, tool_choice = state.parameters.partition(b"\0")
    request = PreparedRequest(
        messages=messages,
        told=state.format,
        assumed=state.assumed,
        system=view.system,
        tools=view.tools,
        thinking=thinking_as_set(thinking, state, setup),
        tool_choice=tool_choice,
        marks=marks_of(state, setup) if warm else None,
        seams=replace(seams_of(ledger, messages), shared=len(messages)),
        folds=neighbours_to_join(messages, view.items[:upto]),
    )
    fields = request.as_anthropic()
    return CachedPrefix(format="anthropic", body=write_json({"model": state.route.model, **fields}))


def thinking_as_set(thinking: bytes, state: State, setup: Setup) -> bytes:
    """Return a request's `thinking` with what the settings ask of the provider about thinking behind a change."""
    asks = state.binds_thinking and setup.settings.model.bound_thinking == "drop"
    return dropping(thinking) if asks else thinking


def build_request(
    state: State, messages: tuple[Message, ...], brought: TurnInput, setup: Setup, *, session: str
) -> PreparedRequest:
    """Return what to send of a state: these messages, and everything around them."""
    view = state.ledger.view
    return PreparedRequest(
        messages=messages,
        told=state.format,
        assumed=state.assumed,
        system=view.system,
        tools=view.tools,
        thinking=thinking_as_set(brought.thinking_json, state, setup),
        tool_choice=brought.tool_choice_json,
        marks=marks_of(state, setup),
        seams=seams_of(state.ledger, messages),
        cache_key=cache_key_for(state.model, session=session),
        tokens=state.prompt,
        decision=state.decision,
        whole=view.whole == view.tokens,
        folds=neighbours_to_join(messages, view.items),
    )
