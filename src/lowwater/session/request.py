"""The request that `prepare` returns: the view in each provider's format, with marks for its prompt cache."""

import logging
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.cache.marks import NOWHERE, CacheMarks, Seams, cache_key_for, place_marks, seams_of
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
from lowwater.core.legality import begin_with_user, mend
from lowwater.core.messages import (
    Format,
    Message,
    Text,
    newest_block,
    repeats_call_ids,
    sent_from,
    with_unique_call_ids,
)
from lowwater.core.strict_json import read_plain, write_json
from lowwater.core.summary.request import CachedPrefix
from lowwater.core.turns.cache import marks_of, prompt_layout, warmth_of
from lowwater.core.turns.state import Setup, State
from lowwater.core.turns.turn import Prepared
from lowwater.core.view import Summary, join_neighbours, neighbours_to_join
from lowwater.protocols import Clock
from lowwater.session.repository import SharedState
from lowwater.session.turn_input import TurnInput, format_of_session

_log = logging.getLogger("lowwater")

MOST_MARKS = 4
"""Cache marks that Anthropic takes in one request (a fifth is refused). OpenAI takes four too, one of them its own."""

_MARK_FIELD = b'"cache_control"'

_MOST_NAMED = 5
"""How many tool results without a call are named in the log; the others are counted."""

_EMPTY = frozenset({b"", b"[]", b'""', b"null"})

_INSTRUCTIONS = frozenset({"system", "developer"})


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A request ready to be sent: `client.messages.create(**request.as_anthropic(), …)`, or `as_openai()`, `as_responses()`."""

    messages: tuple[Message, ...]
    detected_format: Format | None = None
    """The format detected from the messages; None if they read the same in every format."""
    assumed_format: Format | None = None
    """The format the messages were read in before one was detected."""
    system: bytes = b""
    tools: bytes = b""
    thinking: bytes = b""
    """Anthropic's `thinking` parameter as JSON, if it was given to `prepare`."""
    tool_choice: bytes = b""
    """The `tool_choice` parameter as JSON, if it was given to `prepare`."""
    marks: CacheMarks | None = None
    """The kind of cache marks that the provider takes; None if it takes none."""
    seams: Seams = NOWHERE
    """What the marks are placed by: what the last request had too, and what a compaction wrote.

    Without it they are those of `system_and_3` (docs/specification.md: F).
    """
    cache_key: str = ""
    """OpenAI's `prompt_cache_key`: it routes the requests of one conversation to the same cache. Empty for other providers."""
    tokens: int = 0
    """The estimated size of the prompt, in the model's tokens."""
    decision: Decision | None = None
    is_unchanged: bool = False
    """Whether the request holds every message of the client's list unchanged."""
    merged_indexes: tuple[int, ...] = ()
    """The indexes of messages that are merged into the user message before them: some providers refuse two in a row."""

    def __repr__(self) -> str:
        """Return sizes and the reason of the decision; never a word of a message."""
        because = "" if self.decision is None else f", {self.decision.because.code}"
        return f"<PreparedRequest of {len(self.messages):,} messages, {self.tokens:,} tokens{because}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the same for those who print with rich, which would otherwise show every message."""
        return [("messages", len(self.messages)), ("tokens", self.tokens)]

    def as_anthropic(self) -> dict[str, Any]:
        """Return `messages`, and `system`, `tools`, `tool_choice` and `thinking` if there are any, for the Anthropic SDK or API."""
        system, messages = self._split(self._read_as("anthropic"))
        unique = with_unique_call_ids(messages[sent_from(messages) :], across_messages=True)
        raws = encode_messages(begin_with_user(unique), "anthropic")
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
        """The Anthropic betas that the call needs: for `client.beta.messages.create(betas=…)`, or the `anthropic-beta` header."""
        holding = [message for message in self.messages if newest_block([message]) is not None]
        return betas_for(encode_messages(holding, "anthropic"), self.thinking)

    def as_openai(self, *, cache_key: bool = True) -> dict[str, Any]:
        """Return `messages`, and `tools` and `tool_choice` if there are any, for the OpenAI SDK or a compatible API.

        For OpenAI's own models there is a `prompt_cache_key` too; pass `cache_key=False` to give your own.
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
        """Return `input`, and `instructions`, `tools` and `tool_choice` if there are any, for the Responses API.

        The items of an answer are sent exactly as they came. For OpenAI's own models there is a `prompt_cache_key` too, unless
        `cache_key` is False.
        """
        messages = self._read_as("openai_responses")
        raws = encode_messages(messages, "openai_responses")
        if self.marks is not None and self.marks.breakpoints:
            first = 1 if messages and messages[0].role in _INSTRUCTIONS else 0
            seams = self.seams_in("openai_responses", count=len(raws))
            raws = with_item_breakpoints(raws, first=first, marks=self.marks, seams=seams)
        instructions = b"" if self.system in _EMPTY else _as_text(self.system)
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
        """The messages as they are sent: those in `merged_indexes` merged into the message before them."""
        return join_neighbours(self.messages, self.merged_indexes)

    @property
    def last_indexes(self) -> list[int]:
        """For each message that is sent, the index of the last of `messages` in it."""
        return [at for at in range(len(self.messages)) if at + 1 not in self.merged_indexes]

    def _read_as(self, format: Format, *, upto: int | None = None) -> list[Message]:
        read = reread(
            self.messages[:upto], assumed=self.assumed_format, format=self.detected_format or format
        )
        if format == "openai_responses":
            # Messages that read the same in both of OpenAI's formats were read as chat.
            read = reread(read, assumed="openai_chat", format=format)
        return join_neighbours(read, self.merged_indexes)

    def _split(self, messages: Sequence[Message]) -> tuple[bytes, list[Message]]:
        """Return the system prompt and the messages separately, as Anthropic takes them.

        System messages in the list become part of the system prompt, except those that Anthropic allows there (`_may_stay`).
        """
        apart = [
            message.role in _INSTRUCTIONS and not _may_stay(messages[:at], message)
            for at, message in enumerate(messages)
        ]
        if not any(apart):
            return self.system, list(messages)
        moved = [message.text for message, is_apart in zip(messages, apart, strict=True) if is_apart]
        others = [message for message, is_apart in zip(messages, apart, strict=True) if not is_apart]
        texts = [_text_of(self.system) if self.system not in _EMPTY else "", *moved]
        system = "\n\n".join(text for text in texts if text)
        return (write_json(system) if system else b""), others

    def _with_system(self, messages: list[Message]) -> list[Message]:
        return messages if self.system in _EMPTY else [_system_message(self.system), *messages]

    def seams_in(self, format: Format, *, count: int) -> Seams:
        """Return the seams as indexes into the `count` encoded messages, which may be more or fewer than `messages`."""
        if (count == len(self.messages) and not self.merged_indexes) or self.seams == NOWHERE:
            return self.seams
        messages = self._read_as(format)

        def place(at: int) -> int:
            before = self._read_as(format, upto=at + 1)
            if format == "openai_responses":
                return len(encode_messages(before, format)) - 1
            if format == "openai_chat":
                return len(encode_messages(self._with_system(before), format)) - 1
            left_out = sent_from(self._split(messages)[1])
            return len(encode_messages(begin_with_user(self._split(before)[1][left_out:]), format)) - 1

        return self.seams.moved(place)


def _fields(raws: Sequence[bytes], *, listed: str = "messages", **others: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {listed: [read_plain(raw) for raw in raws]}
    return fields | {name: read_plain(value) for name, value in others.items() if value not in _EMPTY}


def _may_stay(before: Sequence[Message], message: Message) -> bool:
    """Return whether a system message may stay in the list: Anthropic takes one only directly after a user message."""
    is_own = message.wire is not None and message.wire.format == "anthropic"
    return is_own and bool(before) and before[-1].role == "user"


def _system_message(system: bytes) -> Message:
    return Message(role="system", parts=(Text(text=_text_of(system)),))


def _as_text(system: bytes) -> bytes:
    """Return a system prompt as one JSON string; one that is a string already stays byte for byte."""
    return system if system.lstrip()[:1] == b'"' else write_json(_text_of(system))


def _text_of(system: bytes) -> str:
    value = msgspec.json.decode(system)
    return value if isinstance(value, str) else "\n\n".join(block.get("text", "") for block in value)


class RequestBuilder:
    """Builds the requests of one session, and remembers the one sent last: the next summary may be asked for by extending it."""

    def __init__(self, shared: SharedState, clock: Clock, *, opened_as: str) -> None:
        """`opened_as` is the session's first name, which its `prompt_cache_key` goes by."""
        self._shared = shared
        self._clock = clock
        self._opened_as = opened_as
        self._last_sent: LastSent | None = None
        self._reported_orphans: set[str] = set()

    def build_to_send(self, prepared: Prepared, turn_input: TurnInput) -> PreparedRequest:
        """Return the request of a turn, remember it, and log what had to be left out of it."""
        self._warn_of_orphans(prepared.state, prepared.messages)
        request = self.build(prepared, turn_input)
        self.remember(request, prepared.state)
        return request

    def build(self, prepared: Prepared, turn_input: TurnInput) -> PreparedRequest:
        """Return the request of a turn."""
        return self.build_for(prepared.state, prepared.messages, turn_input)

    def build_for(
        self, state: State, messages: tuple[Message, ...], turn_input: TurnInput
    ) -> PreparedRequest:
        """Return the request with these messages and the system prompt, tools and parameters of a state of the session."""
        view, setup = state.ledger.view, self._shared.setup
        return PreparedRequest(
            messages=messages,
            detected_format=state.format,
            assumed_format=state.assumed_format,
            system=view.system,
            tools=view.tools,
            thinking=_thinking_with_settings(turn_input.thinking_json, state, setup),
            tool_choice=turn_input.tool_choice_json,
            marks=prompt_layout(state, setup).cache_marks,
            seams=seams_of(state.ledger, messages),
            cache_key=cache_key_for(state.model, session=self._opened_as),
            tokens=state.prompt,
            decision=state.decision,
            is_unchanged=view.original_tokens == view.tokens and not repeats_call_ids(view.messages),
            merged_indexes=neighbours_to_join(messages, view.items),
        )

    def remember(self, request: PreparedRequest | None, state: State, *, body: bytes = b"") -> None:
        """Remember what was sent last, as the bytes of `body` if they are given; None: it is not known."""
        self._last_sent = (
            None
            if request is None
            else LastSent(request=request, model=state.route.model, ledger=state.ledger, body=body)
        )

    def cached_prefix(self, ledger: Ledger | None, upto: int) -> CachedPrefix | None:
        """Return the request that a summary is asked for by extending it: the one sent last, or the first `upto` items."""
        state, last = self._shared.state, self._last_sent
        if upto:
            return build_compaction_request(
                state, ledger or state.ledger, upto, self._shared.setup, self._clock.now()
            )
        return None if last is None else last.as_prefix(ledger or state.ledger, format_of_session(state))

    def _warn_of_orphans(self, state: State, sent: Sequence[Message]) -> None:
        """Log, once each, which tool results are left out of the request because no message makes their call."""
        shown = state.ledger.view.messages
        if len(shown) == len(sent) and all(map(is_, shown, sent)):
            return
        new = sorted(_answered_calls(shown) - _answered_calls(sent) - self._reported_orphans)
        self._reported_orphans.update(new)
        name = self._shared.repository.name
        for call in new[:_MOST_NAMED]:
            _log.warning(
                "%s: a tool result for the call %r is left out of the request: no message makes that call",
                name,
                call,
            )
        if len(new) > _MOST_NAMED:
            _log.warning("%s: so are %s further tool results", name, f"{len(new) - _MOST_NAMED:,}")


def _answered_calls(messages: Iterable[Message]) -> set[str]:
    return {result.call_id for message in messages for result in message.results}


def build_compaction_request(
    state: State, ledger: Ledger, upto: int, setup: Setup, at: float
) -> CachedPrefix:
    """Return a request with the first `upto` items of a view, for the provider to compact by itself.

    It is marked at its end, at or near the end of an earlier request, so that the cache is read. If nothing is cached it
    has no marks: a cache entry written now would never be read, because these messages are about to be replaced.
    """
    view, layout = ledger.view, prompt_layout(replace(state, ledger=ledger), setup).layout
    warm = warmth_of(state, layout, at).hit() > 0
    messages = tuple(mend(view.messages[:upto]))
    thinking, _, tool_choice = state.parameters.partition(b"\0")
    request = PreparedRequest(
        messages=messages,
        detected_format=state.format,
        assumed_format=state.assumed_format,
        system=view.system,
        tools=view.tools,
        thinking=_thinking_with_settings(thinking, state, setup),
        tool_choice=tool_choice,
        marks=marks_of(state, setup) if warm else None,
        seams=replace(seams_of(ledger, messages), shared=len(messages)),
        merged_indexes=neighbours_to_join(messages, view.items[:upto]),
    )
    fields = request.as_anthropic()
    return CachedPrefix(format="anthropic", body=write_json({"model": state.route.model, **fields}))


def _thinking_with_settings(thinking: bytes, state: State, setup: Setup) -> bytes:
    """Return the `thinking` parameter; by setting, it asks the provider to drop thinking that a compaction invalidated."""
    asks = state.binds_thinking and setup.settings.model.bound_thinking == "drop"
    return dropping(thinking) if asks else thinking


class LastSent(Struct, frozen=True, kw_only=True):
    """The request that was sent last, the model as the user spells it, and the ledger at that moment."""

    request: PreparedRequest
    model: str
    ledger: Ledger
    body: bytes = b""
    """The bytes that were sent, if the sender reported them; otherwise they are encoded again."""

    def as_prefix(self, ledger: Ledger, format: Format) -> CachedPrefix | None:
        """Return it as the prefix of a request for a summary, with the messages since; None after a rewind or a retraction."""
        later = ledger.entries[len(self.ledger.entries) :]
        if any(isinstance(entry, Rewound | Retracted) for entry in later):
            return None
        sent = len(self.ledger.messages)
        # As the view shows them, because a message truncated on arrival is longer in the ledger; with the call ids as sent.
        view = ledger.view
        since = [
            message
            for item, message in zip(view.items, with_unique_call_ids(view.messages), strict=True)
            if not isinstance(item, Summary) and item.number > sent
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


class MarkedRequest(Struct, frozen=True, kw_only=True):
    """The parts of an Anthropic request, with marks."""

    messages: list[bytes]
    system: bytes
    tools: bytes


def with_marks(
    raws: Sequence[bytes], system: bytes, tools: bytes, *, marks: CacheMarks, seams: Seams
) -> MarkedRequest:
    """Return an Anthropic request with our marks instead of the client's.

    One mark goes before the messages: on the system prompt, where it covers the tools too, or on the last tool if there is no
    system prompt or one that keeps changing.
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
        return MarkedRequest(messages=bare, system=system, tools=marked_tools)
    return MarkedRequest(messages=bare, system=marked_system or system, tools=tools)


def with_chat_marks(raws: Sequence[bytes], *, first: int, marks: CacheMarks, seams: Seams) -> list[bytes]:
    """Return chat messages with Anthropic's marks, for routers that pass them on; the first `first` are the system prompt."""
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


def with_breakpoints(raws: Sequence[bytes], *, first: int, marks: CacheMarks, seams: Seams) -> list[bytes]:
    """Return chat messages with OpenAI's breakpoints: one on the system prompt, the others on messages, three in all.

    The fourth is the server's own. OpenAI finds a stored prefix without a breakpoint at its end, so none is spent on that.
    """
    bare = [unbreak_message(raw) for raw in raws]
    sizes = [count_blocks(raw) for raw in bare[first:]]
    places = _breakpoint_places(
        sizes, lambda at: carries_break(bare[at]), first=first, marks=marks, seams=seams
    )
    for at in places:
        bare[at] = break_message(bare[at])
    return bare


def with_item_breakpoints(
    raws: Sequence[bytes], *, first: int, marks: CacheMarks, seams: Seams
) -> list[bytes]:
    """Return Responses items with OpenAI's breakpoints, as `with_breakpoints` puts them on chat messages.

    The `instructions` of a request and items that the model wrote cannot carry a breakpoint.
    """
    bare = [unbreak_item(raw) for raw in raws]
    sizes = [count_item_blocks(raw) for raw in bare[first:]]
    places = _breakpoint_places(
        sizes, lambda at: carries_item_break(bare[at]), first=first, marks=marks, seams=seams
    )
    for at in places:
        bare[at] = break_item(bare[at])
    return bare


def _breakpoint_places(
    sizes: Sequence[int], carries: Callable[[int], bool], *, first: int, marks: CacheMarks, seams: Seams
) -> list[int]:
    """Return the indexes that get a breakpoint; `sizes` are the blocks of each message after the first `first`."""
    preamble = [at for at in range(first) if carries(at)]
    places = place_marks(
        sizes,
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages + 1 - len(preamble),
        lookback=marks.lookback,
        carries=lambda at: carries(first + at),
    )
    return [*preamble, *(first + place for place in places)]


def with_marks_left(raws: Sequence[bytes], system: bytes, tools: bytes) -> list[bytes]:
    """Return messages with the client's own marks, without the first ones if a repeated message made them too many."""
    over = sum(part.count(_MARK_FIELD) for part in (system, tools, *raws)) - MOST_MARKS
    kept: list[bytes] = []
    for raw in raws:
        kept.append(unmark_message(raw) if over > 0 else raw)
        over -= raw.count(_MARK_FIELD)
    return kept
