"""Recall by words beside `bm25s`: is the evidence of a question among the first five, or ten, messages found?

    .venv/bin/python -m bench.recall_search                 # a third of the sessions; `--all` for every one, `--few` for a twelfth
    .venv/bin/python -m bench.recall_search --postgres      # the same questions to PostgreSQL, and whether the order is the same
    .venv/bin/python -m bench.recall_search --speed         # a search among 10,000 messages, and the size of the index

The questions are made by rule (`bench/recall_questions.py`) from recorded sessions, and from long chats on many topics. Each is
asked of the messages before it, by `store.search` and by `bm25s` with its usual tokenizer, English stop words and stemmer. What
the ranking has to be tuned was tuned on TUNED; the figures that count are those of all other sources. `bm25s` is installed into an
environment of its own (`bench/.envs/bm25s`) on first use.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

from msgspec import Struct

from bench.peers.environment import python_with
from bench.recall_chats import long_chats
from bench.recall_questions import Question, recorded_questions
from bench.store import Indexed, recorded
from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.core.entries import Appended, Opened
from lowwater.core.formats.openai_chat import decode_message
from lowwater.core.messages import Message, texts_of
from lowwater.core.stored import Append
from lowwater.protocols import Store
from lowwater.stores.sqlite.store import SqliteStore

TUNED = ("entireio-cli", "tau-bench")
"""The sources on which the ranking was tuned."""
REQUIREMENTS = ("bm25s==0.3.16", "PyStemmer==3.1.0")
AHEAD = 5.0
"""By how many points the left-out sources and the chats have to be ahead, in the first five and in the first ten."""
FIRST, MOST = 5, 10
_WORKER = Path(__file__).with_name("recall_bm25s_worker.py")


class Asked(Struct, frozen=True, kw_only=True):
    """A conversation and the questions about it."""

    source: str
    name: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]


class Shares(Struct, kw_only=True):
    """How many questions there were, and for how many the evidence was among the first."""

    questions: int = 0
    ours: list[int]
    theirs: list[int]

    def row(self, name: str) -> str:
        """Return a line of the report."""
        shares = [100 * each / max(1, self.questions) for each in (*self.ours, *self.theirs)]
        return f"| {name} | {self.questions:,} | {shares[0]:.1f} / {shares[1]:.1f} | {shares[2]:.1f} / {shares[3]:.1f} |"

    def ahead(self) -> tuple[float, float]:
        """Return by how many points ours are ahead."""
        five, ten = (
            100 * (ours - theirs) / max(1, self.questions)
            for ours, theirs in zip(self.ours, self.theirs, strict=True)
        )
        return five, ten


def conversations(every: int) -> Iterator[Asked]:
    """Yield the recorded sessions that give questions, one of so many, and all long chats."""
    for session in sessions():
        if int(sha256(session.id.encode()).hexdigest(), 16) % every == 0:
            questions = recorded_questions(session)
            if questions:
                yield Asked(
                    source=session.name.partition("/")[0],
                    name=session.id,
                    messages=tuple(each.message for each in session.messages),
                    questions=tuple(questions),
                )
    for number, (messages, about) in enumerate(long_chats()):
        yield Asked(source="long chats", name=f"chat {number}", messages=messages, questions=about)


def found_by_store(store: Store, asked: Asked) -> list[list[int]]:
    """Return what a store finds for each question among the messages before it."""
    name = f"{asked.source}/{asked.name}"
    version = store.append(name, 0, Append(entries=(Opened(at=0.0, model="m", vocabulary="o200k"),)))
    held, found = 0, {}
    for question in sorted(asked.questions, key=lambda each: each.before):
        new = asked.messages[held : question.before - 1]
        if new:
            sizes = tuple(max(1, sum(map(len, texts_of(message))) // 4) for message in new)
            version = store.append(
                name, version, Append(entries=(Appended(at=1.0, messages=new, tokens=sizes),))
            )
            held += len(new)
        found[question] = [hit.number for hit in store.search(question.text, session=name, limit=MOST)]
    return [found[question] for question in asked.questions]


class Bm25s:
    """The package `bm25s` in a process and an environment of its own."""

    def __init__(self) -> None:
        python = python_with("bm25s", *REQUIREMENTS)
        self._process = subprocess.Popen(
            [str(python), str(_WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def found(self, asked: Asked) -> list[list[int]]:
        """Return what it finds for each question among the messages before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = {
            "texts": ["\n".join(texts_of(message)) for message in asked.messages],
            "questions": [[question.text, question.before] for question in asked.questions],
            "most": MOST,
        }
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer: list[list[int]] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(every: int, postgres: Store | None) -> int:
    """Print both side by side by source and wording; return 1 if we are not far enough ahead where nothing was tuned."""
    shares: dict[str, Shares] = defaultdict(lambda: Shares(ours=[0, 0], theirs=[0, 0]))
    different = questions = 0
    with tempfile.TemporaryDirectory() as folder, closing(Bm25s()) as bm25s:
        for number, asked in enumerate(conversations(every)):
            with closing(SqliteStore(Path(folder) / f"{number}.db", sync="normal")) as store:
                ours = found_by_store(store, asked)
            (Path(folder) / f"{number}.db").unlink()
            if postgres is not None:
                others = found_by_store(postgres, asked)
                questions += len(others)
                different += sum(one != other for one, other in zip(ours, others, strict=True))
            for question, mine, theirs in zip(asked.questions, ours, bm25s.found(asked), strict=True):
                half = "tuned on" if asked.source in TUNED else "left out"
                half = "long chats" if asked.source == "long chats" else half
                for name in (half, f"{half}: {question.wording}", f"source {asked.source}"):
                    _count(shares[name], question, mine, theirs)
    print("| | questions | ours, top 5 / 10 | bm25s, top 5 / 10 |\n|---|---|---|---|")
    print("\n".join(shares[name].row(name) for name in sorted(shares)))
    if postgres is not None:
        print(f"\nPostgreSQL: {different} of {questions:,} questions in another order than SQLite.")
    behind = [
        f"MISSED: {name} is ahead by {five:.1f} / {ten:.1f} points"
        for name in ("left out", "long chats")
        for five, ten in [shares[name].ahead()]
        if min(five, ten) < AHEAD and shares[name].questions
    ]
    print("\n".join(behind))
    return int(bool(behind or different))


def _count(shares: Shares, question: Question, ours: Sequence[int], theirs: Sequence[int]) -> None:
    shares.questions += 1
    for counts, found in ((shares.ours, ours), (shares.theirs, theirs)):
        for place, first in enumerate((FIRST, MOST)):
            counts[place] += not set(found[:first]).isdisjoint(question.evidence)


def speed() -> int:
    """Print how long searches among 10,000 recorded messages take, and how large the index is."""
    messages = [decode_message(raw, at) for at, raw in enumerate(_raws(recorded()))]
    asked = [question.text for session in sessions() for question in recorded_questions(session)[:1]][:60]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.db"
        with closing(SqliteStore(path, sync="normal")) as store:
            sizes = tuple(max(1, len(message.text) // 4) for message in messages)
            began = thread_time()
            opened = Opened(at=0.0, model="m", vocabulary="o200k")
            store.append(
                "s", 0, Append(entries=(opened, Appended(at=1.0, messages=tuple(messages), tokens=sizes)))
            )
            store.search("warm")
            taken = thread_time() - began
            walls, cpus = zip(*(_timed(store, text) for text in asked), strict=True)
        held = Indexed.in_file(path)
    print(
        f"{len(messages):,} messages: stored and indexed in {taken:.1f} s of CPU; index of {held.index_bytes:,} bytes; a search takes "
        f"{1e3 * median(cpus):.1f} ms of CPU (longest {1e3 * max(cpus):.1f}), {1e3 * median(walls):.1f} ms by the clock "
        f"(longest {1e3 * max(walls):.1f}), over {len(asked)} questions."
    )
    return 0


def _timed(store: Store, text: str) -> tuple[float, float]:
    """Return the wall and CPU time of the faster of two searches."""
    times: list[tuple[float, float]] = []
    for _ in range(2):
        wall, cpu = perf_counter(), thread_time()
        store.search(text, session="s", limit=FIRST)
        times.append((perf_counter() - wall, thread_time() - cpu))
    return min(times)


def _raws(body: bytes) -> list[bytes]:
    return [json.dumps(each).encode() for each in json.loads(body)]


def main(arguments: Sequence[str] = ()) -> int:
    """Measure as the arguments say."""
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    if "--speed" in arguments:
        return speed()
    every = 1 if "--all" in arguments else 12 if "--few" in arguments else 3
    if "--postgres" not in arguments:
        return compare(every, None)
    from lowwater.stores.postgres.store import PostgresStore  # noqa: PLC0415 - needs the driver
    from lowwater.testing.postgres import postgres_server  # noqa: PLC0415 - likewise

    with postgres_server() as address, closing(PostgresStore(address)) as store:
        return compare(every, store)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
