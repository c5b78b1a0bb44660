"""Legal ledgers: sessions that grow, are compacted, rewound and named, with every group whole at every step."""

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from lowwater.core.entries import (
    Appended,
    Checkpointed,
    Entry,
    ModelChanged,
    Opened,
    PreambleChanged,
    Rewound,
    TakenBack,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message
from lowwater.core.view import Summary
from lowwater.testing.strategies.compaction import draw_compaction
from lowwater.testing.strategies.skeleton import Slot
from lowwater.testing.strategies.text import texts
from lowwater.testing.strategies.values import draw_messages, preambles

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
    """Draw a ledger; each of its views pairs calls with results, but for calls that were only just made."""
    session = _Session(draw)
    for step in draw(_STEPS):
        session.take(step)
    return session.ledger


class _Session:
    """A ledger in the making, and where in it no call was open: only there may a view be cut or gone back to."""

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
        """Take back what stands behind the newest summary from some message of the user on."""
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
            self._add([TakenBack(at=at, numbers=gone)])

    def _append(self, at: float) -> None:
        """Append the next messages: answers if calls are open, else what the user says and what the model makes of it."""
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
