"""One compression by `hermes-classic` and by Hermes' own compressor, and what one more turn and an extract take.

    .venv/bin/python -m bench.hermes

Both get the same generated coding sessions, the same window and the same text in place of a summary. Hermes is installed
into an environment of its own (`bench/.envs/hermes`) on first use.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from functools import cache
from statistics import median
from time import process_time
from typing import Any

import msgspec
from msgspec import Struct

import lowwater
from bench.peers.environment import Unavailable
from bench.peers.hermes import Hermes
from bench.standing import StandIn
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.formats.codec import decode_messages, raw_messages
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.tokens.counting import count_message
from lowwater.settings import CompressionSettings, OutputSettings, Settings
from tests.generated import generate_session

Messages = list[dict[str, Any]]
QUIET = OutputSettings(quiet=True)


class Case(Struct, frozen=True, kw_only=True):
    """A list to compress: its length, the model whose window both work for, and where both start."""

    length: int
    model: str
    threshold: float
    """Of the window. Hermes raises it to 75 % below 512K; the protected tail is a fifth of it for both."""
    rounds: int

    @property
    def settings(self) -> Settings:
        """The settings under which both protect the same tail."""
        return Settings(output=QUIET, compression=CompressionSettings(threshold=self.threshold))


CASES = (
    Case(length=1_000, model="gpt-4o", threshold=0.75, rounds=9),
    Case(length=10_000, model="gpt-4.1", threshold=0.50, rounds=5),
)
FASTER, FLAT = 2.0, 2.0
VIEW, LONG = 200, 10_000
TOKENIZER = tokenizer_for("o200k")


class Row(Struct, frozen=True, kw_only=True):
    """One way to compress one list: its times, and what it left."""

    name: str
    seconds: list[float]
    messages: int
    tokens: int


@cache
def session_of(length: int) -> Messages:
    """Return a generated coding session of `length` messages, or some more so that it ends with the user's word.

    Hermes keeps everything from the newest user message on: inside a long tool loop it would have little to do.
    """
    generated = generate_session("coding", seed=1, turns=length * 6 // 10)
    messages: Messages = [msgspec.json.decode(raw) for raw in generated.as_openai_chat()]
    last = next(at for at in range(length - 1, len(messages)) if messages[at]["role"] == "user")
    return messages[: last + 1]


def tokens_of(messages: Sequence[object]) -> int:
    decoded = decode_messages(raw_messages(messages), "openai_chat")
    return sum(count_message(message, TOKENIZER) for message in decoded)


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = process_time()
    work()
    return process_time() - start


def opened(
    messages: Messages, summarizer: lowwater.Summarizer, model: str, settings: Settings
) -> lowwater.Session:
    """Return a session that has taken the messages in."""
    keeper = lowwater.Lowwater(
        model=model, policy="hermes-classic", summarizer=summarizer, settings=settings, store="memory:"
    )
    session = keeper.session()
    session.append(messages)
    return session


def compare(case: Case) -> list[Row]:
    """Compress one list by Hermes, by the library's one call and by an open session, in turns."""
    messages, model, settings = session_of(case.length), case.model, case.settings
    stand_in = StandIn.for_span(lambda first: opened(messages, first, model, settings).compress())
    status = opened([], stand_in, model, settings).status()
    sessions: list[lowwater.Session] = []

    def by_call() -> None:
        done = lowwater.compress(
            messages, model=model, policy="hermes-classic", force=True, summarizer=stand_in, settings=settings
        )
        assert done.event is not None
        assert done.event.summarizer == StandIn.NAME, "the stand-in was not accepted"

    times: dict[str, list[float]] = {"hermes": [], "call": [], "session": []}
    with Hermes(messages, context=status.context, summary=stand_in.text) as hermes:
        for _ in range(case.rounds):
            times["hermes"].append(hermes.compress().seconds)
            times["call"].append(timed(by_call))
            sessions.append(opened(messages, stand_in, model, settings))
            times["session"].append(timed(sessions[-1].compress))
        theirs = hermes.compress()
    assert abs(theirs.tail - status.threshold / 5) <= 1, "the tails differ"
    ours = sessions[-1].view()
    kept, size = len(ours), tokens_of(ours)
    left, left_size = len(theirs.messages), tokens_of(theirs.messages)
    return [
        Row(name="(before)", seconds=[], messages=len(messages), tokens=tokens_of(messages)),
        Row(name="Hermes `compress()`", seconds=times["hermes"], messages=left, tokens=left_size),
        Row(name="`session.compress()`", seconds=times["session"], messages=kept, tokens=size),
        Row(name="`lowwater.compress(list)`", seconds=times["call"], messages=kept, tokens=size),
    ]


def one_more_turn(rounds: int = 200) -> tuple[float, float, int]:
    """Return the seconds of append and prepare on a short and on a long history with one view, and its items."""
    compression = CompressionSettings(protect_last_n=VIEW - 4)
    settings = Settings(output=QUIET, compression=compression)
    messages, model = session_of(LONG), "gpt-5-mini"
    stand_in = StandIn.for_span(lambda first: opened(messages, first, model, settings).compress())
    long = opened(messages, stand_in, model, settings)
    assert long.compress() is not None
    short = opened(long.view(), stand_in, model, settings)
    seconds: tuple[list[float], list[float]] = ([], [])
    items = long.status().messages
    for number in range(rounds):
        for session, taken in ((short, seconds[0]), (long, seconds[1])):
            said = {
                "role": "user" if number % 2 == 0 else "assistant",
                "content": f"turn {number}: {'go on ' * 60}",
            }
            taken.append(_turn(session, said))
    return median(seconds[0]), median(seconds[1]), items


def _turn(session: lowwater.Session, message: dict[str, str]) -> float:
    start = process_time()
    session.append(message)
    session.prepare()
    return process_time() - start


def extractive(rounds: int = 5) -> tuple[int, float, int]:
    """Return the size of a generated session, and the seconds and tokens of its extract of at most 10,000."""
    generated = generate_session("coding", seed=1, target_tokens=100_000, count=TOKENIZER.count)
    numbers = tuple(range(1, len(generated.messages) + 1))
    request = SummaryRequest(messages=generated.messages, numbers=numbers, max_tokens=10_000, recall=True)
    size = sum(count_message(message, TOKENIZER) for message in generated.messages)
    seconds = median(timed(lambda: extract(request, TOKENIZER)) for _ in range(rounds))
    return size, seconds, TOKENIZER.count(extract(request, TOKENIZER))


def table(rows: Sequence[Row], model: str) -> list[str]:
    """Return a comparison as Markdown."""
    before, hermes, *_ = rows
    lines = [
        f"**{before.messages:,} messages, {before.tokens:,} tokens**, for the window of {model}",
        "",
        "| | CPU time, median | Hermes ÷ this | messages left | tokens left |",
        "|---|---|---|---|---|",
    ]
    for row in rows[1:]:
        taken = median(row.seconds)
        faster = median(hermes.seconds) / taken
        lines.append(
            f"| {row.name} | {taken * 1e3:.0f} ms | {faster:.2f} | {row.messages:,} | {row.tokens:,} |"
        )
    return [*lines, ""]


def main() -> int:
    missed: list[str] = []
    try:
        for case in CASES:
            rows = compare(case)
            print("\n".join(table(rows, case.model)))
            if median(rows[1].seconds) < FASTER * median(rows[2].seconds):
                missed.append(f"{case.length:,} messages: less than {FASTER:g} times as fast as Hermes")
    except Unavailable as reason:
        print(f"Hermes is not compared: {reason}\n")
    short, long, items = one_more_turn()
    print(
        f"One more turn (append and prepare) with a view of {items} messages: {short * 1e3:.2f} ms on a history of the "
        f"same size, {long * 1e3:.2f} ms on one of {LONG:,} ({long / short:.2f})."
    )
    if long > FLAT * short:
        missed.append(f"one more turn on a long history takes more than {FLAT:g} times as long")
    size, seconds, tokens = extractive()
    print(f"Extractive summary of {size:,} tokens: {seconds * 1e3:.0f} ms, {tokens:,} tokens written.")
    print("\n".join(f"MISSED: {bound}" for bound in missed))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
