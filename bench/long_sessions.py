"""Does one turn on a stored session cost the same however long its history is, and a compaction no more than a message?

The histories are put into the store directly, as long-running agents leave them: an entry for each message, and a compaction
whenever 500 have come. Everything measured afterwards is done by the library.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

import msgspec
from msgspec import Struct

from bench.peers.took import Took, timed
from lowwater import Lowwater
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.entries import Appended, Compacted, Entry, KeptRange, Numbers, Opened, SummarizedSpan
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Message
from lowwater.core.stored import About, Append
from lowwater.core.tokens.counting import count_message
from lowwater.protocols import Store
from lowwater.session.factories import resolve_store
from lowwater.settings import OutputSettings, Settings
from tests.generated import generate_session

LENGTHS = (1_000, 10_000, 100_000)
MODEL = "gpt-5-mini"
CYCLE, EVERY, TAIL, LONGEST = 1_000, 500, 200, 400
QUIET = Settings(output=OutputSettings(quiet=True))
SUMMARY = (
    "## Goal\nKeep the tests of the payment service green.\n\n"
    + "- A file was changed and its test run.\n" * 40
)


class History(Struct, frozen=True, kw_only=True):
    """A stored session of so many messages."""

    length: int
    path: Path

    @property
    def address(self) -> str:
        """Where it is kept; every one has a file of its own."""
        return f"sqlite:///{self.path}"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"of {self.length}"


def build(length: int, folder: Path) -> History:
    """Store a session of `length` messages whose view is a summary and some 200 of them, the same for any length."""
    history = History(length=length, path=folder / f"{length}.db")
    store = resolve_store(history.address)
    version = store.append(history.name, 0, Append(entries=(_opened(),), about=About()))
    for entries in _chapters(length):
        version = store.append(history.name, version, Append(entries=entries))
    store.close()
    return history


def _opened() -> Opened:
    return Opened(at=0.0, model=MODEL, vocabulary=tokenizer_for("o200k").vocabulary)


def _chapters(length: int) -> Iterator[tuple[Entry, ...]]:
    """Yield what comes between two compactions, with the second of them."""
    tokenizer = tokenizer_for("o200k")
    summary_tokens = tokenizer.count(SUMMARY)
    cycle = _cycle()
    for start in range(0, length, EVERY):
        messages = [_numbered(cycle[at % CYCLE], at) for at in range(start, start + EVERY)]
        appended = [
            Appended(at=float(start), messages=(message,), tokens=(count_message(message, tokenizer),))
            for message in messages
        ]
        end = start + EVERY
        cut = next(at for at in range(EVERY - TAIL, 0, -1) if messages[at].role == "user") + start
        sources = (Numbers(first=1, last=cut),)
        summary = SummarizedSpan(text=SUMMARY, role="user", sources=sources, tokens=summary_tokens)
        tail = KeptRange(numbers=Numbers(first=cut + 1, last=end))
        yield (*appended, Compacted(at=float(end), mechanisms=("summarize",), items=(summary, tail)))


def _cycle() -> list[bytes]:
    generated = generate_session("coding", seed=1, turns=CYCLE)
    return generated.as_openai_chat()[1 : CYCLE + 1]


def _numbered(raw: bytes, number: int) -> Message:
    """Return a message that is like no other, and not long."""
    told = msgspec.json.decode(raw)
    told["content"] = f"[{number}] {(told['content'] or '')[:LONGEST]}"
    return decode_messages([msgspec.json.encode(told)], "openai_chat")[0]


def turn(history: History, number: int) -> Took:
    """Return the time of one turn by a process that has just come to the session."""

    def take() -> None:
        keeper = Lowwater(model=MODEL, settings=QUIET, store=history.address)
        take_turn(keeper, history.name, number)
        keeper.close()

    return timed(take)


def take_turn(keeper: Lowwater, name: str, number: int) -> None:
    """Ask, prepare the request and record the answer, in a session that is opened for it."""
    session = keeper.session(name)
    session.append({"role": "user", "content": f"Step {number}: {'go on ' * 60}"})
    session.prepare()
    session.record(_answer(number))


def _answer(number: int) -> dict[str, object]:
    message = {"role": "assistant", "content": f"Step {number} is done."}
    return {
        "id": f"answer-{number}",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 30_000, "completion_tokens": 8, "total_tokens": 30_008},
    }


class Turns(Struct, frozen=True, kw_only=True):
    """Turns on one history: the first, which makes up for what the session had not yet been told, and the others."""

    history: History
    first: Took
    others: list[Took]

    @property
    def usual(self) -> Took:
        """The median of the others."""
        return middle(self.others)


def turns(histories: Sequence[History], rounds: int) -> list[Turns]:
    """Take turns on the histories, one after the other."""
    taken = [[turn(history, number) for history in histories] for number in range(rounds + 1)]
    return [
        Turns(history=history, first=of_one[0], others=list(of_one[1:]))
        for history, of_one in zip(histories, zip(*taken, strict=True), strict=True)
    ]


def middle(taken: Sequence[Took]) -> Took:
    """Return the median, on the wall and of the processor."""
    return Took(wall=median(each.wall for each in taken), cpu=median(each.cpu for each in taken))


class Listening:
    """A store that remembers what it was given, and has another do the work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.given: list[Append] = []

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Remember what is new, and keep it."""
        self.given.append(new)
        return self._store.append(session, expected, new)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


class Commits(Struct, frozen=True, kw_only=True):
    """What it takes to commit a message, and a compaction of the whole history."""

    message: Took
    compaction: Took
    stood_for: int
    """How many messages the summary stands for."""


def commits(history: History, rounds: int) -> Commits:
    """Have a real session compact the history, and commit what it wrote again and again, in turns with messages."""
    store = resolve_store(history.address)
    listening = Listening(store)
    session = Lowwater(model=MODEL, settings=QUIET, store=cast("Store", listening)).session(history.name)
    assert session.compress() is not None
    compaction = next(
        new for new in listening.given if any(isinstance(each, Compacted) for each in new.entries)
    )
    version = store.outline(history.name).version
    seconds: tuple[list[Took], list[Took]] = ([], [])
    for number in range(rounds):
        message = decode_messages([b'{"role":"user","content":"Step %d of many."}' % number], "openai_chat")[
            0
        ]
        small = Append(entries=(Appended(at=float(number), messages=(message,), tokens=(8,)),))
        for new, taken in zip((small, compaction), seconds, strict=True):
            taken.append(timed(partial(store.append, history.name, version, new)))
            version = store.outline(history.name).version
    store.close()
    return Commits(
        message=middle(seconds[0]), compaction=middle(seconds[1]), stood_for=_stood_for(compaction)
    )


def _stood_for(new: Append) -> int:
    stands = [stand for entry in new.entries if isinstance(entry, Compacted) for stand in entry.items]
    numbers = [each for stand in stands if isinstance(stand, SummarizedSpan) for each in stand.sources]
    return sum(each.last - each.first + 1 for each in numbers if isinstance(each, Numbers))
