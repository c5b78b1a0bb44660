"""Hypothesis strategies for messages as values, and for legal ledgers with compactions, rewinds and checkpoints."""

from collections.abc import Iterable, Sequence

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Checkpointed,
    Compacted,
    Edit,
    Entry,
    KeptRange,
    ModelChanged,
    Numbers,
    Opened,
    PreambleChanged,
    Retracted,
    Rewound,
    SummarizedSpan,
    ViewItem,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import (
    AnyPart,
    Document,
    Image,
    Message,
    ResultPart,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    groups,
)
from lowwater.core.view import Item, Summary
from lowwater.testing.strategies.transcripts import (
    JsonSpelling,
    Slot,
    arguments,
    base64s,
    names,
    skeletons,
    spoken,
    texts,
)

# Messages

_TEXT = spoken().map(lambda text: Text(text=text))
_IMAGE = st.one_of(
    base64s().map(lambda data: Image(source="base64", data=data, media_type="image/png")),
    st.just(Image(source="url", data="https://example.com/a.png")),
)
_DOCUMENT = base64s().map(
    lambda data: Document(source="base64", data=data, media_type="application/pdf", title="a.pdf")
)
_THINKING = st.one_of(
    spoken().map(lambda text: Thinking(text=text, signature="EqQBCkYIBhgCKkD==")),
    st.just(Thinking(text="", signature="ErcCsealed==", redacted=True)),
)
_SAID: st.SearchStrategy[list[AnyPart]] = st.lists(_TEXT | _IMAGE | _DOCUMENT, min_size=1, max_size=3)
_OUTPUT: st.SearchStrategy[list[ResultPart]] = st.lists(_TEXT | _TEXT | _IMAGE, max_size=2)
_ALONE = (
    Slot(speaker="user"),
    Slot(speaker="model"),
    Slot(speaker="model", call_ids=("call_a", "call_b")),
    Slot(speaker="tools", call_ids=("call_a",)),
)


@st.composite
def message_values(draw: st.DrawFn) -> Message:
    """Draw a single message of any speaker."""
    return draw_messages(draw, draw(st.sampled_from(_ALONE)))[0]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw messages in which every call is answered and the roles alternate as the providers require."""
    messages: list[Message] = []
    for slot in draw(skeletons()):
        messages += draw_messages(draw, slot)
    return messages


def draw_messages(draw: st.DrawFn, slot: Slot) -> list[Message]:
    """Draw the messages of one slot: one message, or one for each answered call."""
    match slot.speaker:
        case "user":
            return [Message(role="user", parts=tuple(draw(_SAID)))]
        case "tools":
            return [Message(role="tool", parts=(_result(draw, call_id),)) for call_id in slot.call_ids]
        case "model":
            parts: list[AnyPart] = [*draw(st.lists(_THINKING, max_size=1))]
            if not slot.call_ids or draw(st.booleans()):
                parts.append(draw(_TEXT))
            calls = [
                ToolCall(id=call_id, name=draw(names()), arguments=JsonSpelling().write(draw(arguments())))
                for call_id in slot.call_ids
            ]
            return [Message(role="assistant", parts=(*parts, *calls))]


def _result(draw: st.DrawFn, call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=tuple(draw(_OUTPUT)), is_error=draw(st.booleans()))


# Ledgers

_MODELS = st.sampled_from(("claude-opus-5-5", "gpt-6.1-sol", "qwen3-coder"))
_TOKENS = st.integers(min_value=0, max_value=5_000)
_STEPS = st.lists(
    st.sampled_from(
        ("append", "append", "append", "compact", "rewind", "take back", "checkpoint", "model", "preamble")
    ),
    max_size=14,
)


def ledger_entries() -> st.SearchStrategy[list[Entry]]:
    """Return a strategy for the entries of a legal ledger, in order."""
    return ledgers().map(lambda ledger: list(ledger.entries))


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    """Draw a ledger; in each of its views every call has its result, except calls that were only just made."""
    session = _Session(draw)
    for step in draw(_STEPS):
        session.take(step)
    return session.ledger


class _Session:
    """A ledger under construction, and the positions in it without open calls: only to those may it be rewound."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        opened = Opened(at=0.0, model=draw(_MODELS), vocabulary="words")
        self.ledger = Ledger().append(opened)
        self._safe = [0, 1]
        self._open_calls: tuple[str, ...] = ()
        self._calls = 0

    def take(self, step: str) -> None:
        draw = self._draw
        at = float(len(self.ledger.entries))
        match step:
            case "append":
                self._append(at)
            case "model":
                self._add([ModelChanged(at=at, model=draw(_MODELS))])
            case "preamble":
                tools = draw(st.sampled_from((b"", b"[]", b'[{"name":"terminal"}]')))
                self._add(
                    [PreambleChanged(at=at, system=draw(preambles()), tools=tools, tokens=draw(_TOKENS))]
                )
            case "checkpoint":
                self._add([Checkpointed(at=at, name=draw(texts()))])
            case "compact":
                compacted = draw_compaction(draw, self.ledger, at)
                self._add([compacted] if compacted else [])
            case "take back":
                self._take_back(at)
            case _ if not self._open_calls:
                to = draw(st.sampled_from(self._safe))
                self._add([Rewound(at=at, to=to, discard_later=draw(st.booleans()))])

    def _take_back(self, at: float) -> None:
        """Retract the messages from some user message after the newest summary on."""
        items = list(self.ledger.view.items)
        behind = 1 + max((at for at, item in enumerate(items) if isinstance(item, Summary)), default=-1)
        starts = [
            index
            for index in range(behind, len(items))
            if items[index].message.role == "user" and not items[index].message.results
        ]
        if starts:
            start = self._draw(st.sampled_from(starts))
            gone = tuple(item.number for item in items[start:] if not isinstance(item, Summary))
            self._open_calls = ()
            self._add([Retracted(at=at, numbers=gone)])

    def _append(self, at: float) -> None:
        """Append the next messages: results if calls are open, else a user message and the model's answer."""
        if self._open_calls:
            slots = [Slot(speaker="tools", call_ids=self._open_calls)]
            self._open_calls = ()
        else:
            calls = self._draw(st.sampled_from((0, 1, 2)))
            ids = tuple(f"call_{self._calls + number}" for number in range(calls))
            self._calls += calls
            slots = [Slot(speaker="user"), Slot(speaker="model", call_ids=ids)]
            is_answered = self._draw(st.booleans())
            if ids and is_answered:
                slots.append(Slot(speaker="tools", call_ids=ids))
            else:
                self._open_calls = ids
        self._add(
            [self._appended(at, [message for slot in slots for message in draw_messages(self._draw, slot)])]
        )

    def _appended(self, at: float, messages: Sequence[Message]) -> Appended:
        tokens = tuple(self._draw(_TOKENS) for _ in messages)
        return Appended(at=at, messages=tuple(messages), tokens=tokens)

    def _add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.ledger = self.ledger.append(entry)
            if not self._open_calls:
                self._safe.append(len(self.ledger.entries))


def preambles() -> st.SearchStrategy[bytes]:
    """Return a strategy for a system prompt as JSON."""
    return texts().map(msgspec.json.encode)


# Compactions

_FATES = st.sampled_from(("keep", "alter", "summarize", "summarize"))


def draw_compaction(draw: st.DrawFn, ledger: Ledger, at: float) -> Compacted | None:
    """Draw a compaction that makes the view smaller, or None where nothing can be removed.

    Open calls and the newest user message stay as they are.
    """
    items = list(ledger.view.items)
    newest = max((index for index, item in enumerate(items) if _is_asked(item.message)), default=-1)
    stands: list[ViewItem] = []
    waiting: list[Item] = []
    for span in groups([item.message for item in items]):
        group = items[span.start : span.stop]
        is_fixed = span.start <= newest < span.stop or _is_open(group)
        fate = "keep" if is_fixed else draw(_FATES)
        if fate == "summarize":
            waiting += group
            continue
        stands += _summarized(draw, waiting)
        waiting = []
        stands += [
            _altered(draw, ledger, item) if fate == "alter" else _as_it_is(ledger, item) for item in group
        ]
    stands += _summarized(draw, waiting)
    compacted = Compacted(at=at, mechanisms=("elide", "summarize"), items=tuple(stands))
    return compacted if ledger.append(compacted).view.tokens < ledger.view.tokens else None


def _is_asked(message: Message) -> bool:
    return message.role == "user" and not message.results


def _is_open(group: Sequence[Item]) -> bool:
    answered = {result.call_id for item in group for result in item.message.results}
    return any(call.id not in answered for item in group for call in item.message.calls)


def _summarized(draw: st.DrawFn, items: Sequence[Item]) -> list[ViewItem]:
    if not items:
        return []
    tokens = draw(st.integers(min_value=0, max_value=max(0, sum(item.tokens for item in items) - 1)))
    depth = 1 + max((item.depth for item in items if isinstance(item, Summary)), default=0)
    sources = _ranges([number for item in items for number in _numbers(item)])
    return [SummarizedSpan(text=draw(spoken()), role="user", sources=sources, tokens=tokens, depth=depth)]


def _numbers(item: Item) -> list[int]:
    if isinstance(item, Summary):
        return [number for span in item.sources for number in range(span.first, span.last + 1)]
    return [item.number]


def _ranges(numbers: Sequence[int]) -> tuple[Numbers, ...]:
    ranges: list[Numbers] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1].last == number - 1:
            ranges[-1] = replace(ranges[-1], last=number)
        else:
            ranges.append(Numbers(first=number, last=number))
    return tuple(ranges)


def _as_it_is(ledger: Ledger, item: Item) -> ViewItem:
    """Return the entry's item that shows an item as it is shown now."""
    if isinstance(item, Summary):
        message = item.message
        return SummarizedSpan(
            text=message.text, role=message.role, sources=item.sources, tokens=item.tokens, depth=item.depth
        )
    if item.message is ledger.message(item.number):
        return KeptRange(numbers=Numbers(first=item.number, last=item.number))
    original = ledger.message(item.number)
    return AlteredMessage(number=item.number, edits=_placeholders(original), tokens=item.tokens)


def _altered(draw: st.DrawFn, ledger: Ledger, item: Item) -> ViewItem:
    """Return the item without its tool outputs and its thinking, if it has any."""
    if isinstance(item, Summary):
        return _as_it_is(ledger, item)
    edits = _placeholders(ledger.message(item.number))
    if not edits or item.tokens == 0:
        return _as_it_is(ledger, item)
    tokens = draw(st.integers(min_value=0, max_value=item.tokens - 1))
    return AlteredMessage(number=item.number, edits=edits, tokens=tokens)


def _placeholders(message: Message) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    for at, part in enumerate(message.parts):
        match part:
            case ToolResult(parts=[_, *_]):
                edits.append(Edit(path=(at, 0), by=Text(text="[elided · recall lw:1]")))
            case Thinking() if len(message.parts) > 1:
                edits.append(Edit(path=(at,), by=None))
            case _:
                pass
    return tuple(edits)
