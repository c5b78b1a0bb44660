"""Entries, events and records for the checks of stores, and helpers that those share."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Reason
from lowwater.core.entries import Appended, Compacted, Entry, KeptRange, Numbers, SummarizedSpan
from lowwater.core.events import Compaction, Phase, RecallUse, Rejected, Skip, TurnRecord
from lowwater.core.messages import Message, Text, Wire
from lowwater.core.stored import Append
from lowwater.errors import LowwaterError, StaleLedger
from lowwater.protocols import Store

Open = Callable[[], Store]
Check = Callable[[Open], None]
OpenConcealing = Callable[[Callable[[str], str]], Store]
ConcealingCheck = Callable[[OpenConcealing], None]
Failed = TypeVar("Failed", bound=LowwaterError)


def said(text: str, at: float = 1.0) -> Appended:
    """Return an entry with one user message that has a wire form."""
    raw = b'{ "role":"user", "content":"%d" }' % len(text)
    message = Message(
        role="user", parts=(Text(text=text),), wire=Wire(format="openai_chat", raw=raw, exact=False)
    )
    return Appended(at=at, messages=(message,), tokens=(len(text),))


def texts(entries: Sequence[Entry]) -> list[str]:
    """Return the text of all messages in the entries."""
    return [message.text for entry in entries if isinstance(entry, Appended) for message in entry.messages]


def summarized(last: int, at: float = 3.0) -> Compacted:
    """Return a compaction that replaces the messages before `last` by a summary and keeps that one."""
    summary = SummarizedSpan(text="so far", role="user", sources=(Numbers(first=1, last=last - 1),), tokens=2)
    kept = KeptRange(numbers=Numbers(first=last, last=last))
    return Compacted(at=at, mechanisms=("summarize",), items=(summary, kept))


def compaction(at: float = 3.0, number: int = 1) -> Compaction:
    """Return a compaction event with a value in every field."""
    return Compaction(
        at=at,
        model="m",
        mode="summary",
        mechanisms=("elide", "summarize"),
        because=Reason(code="rent_paid", facts={"price": 7, "share": 0.5, "of": "tail"}),
        before=1000,
        after=400,
        items_before=20,
        items_after=8,
        first_changed=2,
        disturbed=300,
        summary_tokens=120,
        summarizer="small",
        score=0.875,
        repaired_score=0.9375,
        seconds=1.5,
        phases=(Phase(mechanism="elide", removed=200), Phase(mechanism="summarize", removed=400)),
        number=number,
        cost=12_345,
        rejected=(Rejected(by="small", code="references_missing", missing=1, first_missing=("src/数.py",)),),
        price=20_000,
        saves=5_000,
        summary_prompts=61_500,
    )


def skip(at: float = 4.0) -> Skip:
    """Return an event that says why nothing was done."""
    return Skip(at=at, because=Reason(code="headroom", facts={"free": 99}), prompt=1200)


def turn(at: float = 5.0, model: str = "m") -> TurnRecord:
    """Return a turn's record with a value in every field."""
    usage = Usage(uncached=1, cache_read=2, cache_write=3, cache_write_long=4, output=5)
    return TurnRecord(
        at=at,
        model=model,
        usage=usage,
        expected=Usage(uncached=9),
        cost=7,
        untouched=11,
        removed=13,
        decision="keep",
        thinking_off=True,
        recall=RecallUse(searches=2, expands=1, found=2, named=1),
        estimated=17,
    )


def add(store: Store, session: str, expected: int, *entries: Entry) -> int:
    """Append entries and nothing else."""
    return store.append(session, expected, Append(entries=entries))


def append_patiently(store: Store, session: str, entry: Entry) -> int:
    """Append as a session does: on StaleLedger read again and retry."""
    while True:
        try:
            return add(store, session, store.read(session).version, entry)
        except StaleLedger:
            continue


def error(use: Callable[[], object], kind: type[Failed]) -> Failed:
    """Return the error of this kind that `use` raises, or raise AssertionError."""
    try:
        use()
    except kind as raised:
        return raised
    raise AssertionError(f"no {kind.__name__} was raised")


def stale(use: Callable[[], object]) -> StaleLedger:
    """Return the StaleLedger that `use` raises, or raise AssertionError."""
    return error(use, StaleLedger)
