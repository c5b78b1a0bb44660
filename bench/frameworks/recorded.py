"""Recorded sessions through each framework's real agent: with Lowwater, and with the compaction that the framework brings along.

    .venv/bin/python -m bench.frameworks.recorded play FILE [NAME …] [--sessions N] [--windows 16000,…] [--calls N] [--model MODEL] [--minutes N]
    .venv/bin/python -m bench.frameworks.recorded table FILE

Sessions are sampled at random over their sources (`bench.sampled`), of each the first `--calls`. Turn by turn the user says what was recorded, the scripted
model answers and calls tools as recorded, and the tools return what was recorded. `play` appends each outcome to FILE and plays nothing twice, so
it can be stopped at any time. Whoever asks the model for a summary gets the one that Lowwater extracts from the same messages (3,000 tokens at most), and pays
for it; Lowwater, as it comes, extracts its own. Rework is one recall of each result that an answer names something of that is not in its request any
more: the prompt read again, the result written.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.frameworks.billing import bill_of, standing
from bench.frameworks.roster import FRAMEWORKS, WORKERS, Framework
from bench.frameworks.running import Compaction, run_worker
from bench.frameworks.scripted import is_of_agent, messages_in, said_last
from bench.frameworks.task import RESULT
from bench.peers.environment import Unavailable
from bench.sampled import sampled
from bench.transcripts import ABSENT, CANONICAL
from bench.windows import interval, ratio
from lowwater.adapters.models import load_registry
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Message, texts_of
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest
from lowwater.lab.references.uses import LaterUse, find_words, uses_of
from lowwater.lab.replay.script import ReplayScript
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen

SESSIONS, CALLS, LEAST_CALLS, WINDOWS = 30, 60, 40, (16_000, 32_000, 64_000)
MODEL = "gpt-6.1-sol"
NAMES = ("LangChain", "pydantic-ai", "Hermes")
"""Those whose workers can play a recorded session."""
ARMS: tuple[Compaction, ...] = ("lowwater", "own")
SYSTEM = "You are a careful assistant. Use the tools that you are given, and answer the user."
_SUMMARY_TOKENS = 3_000
_PROBE = 80
"""Characters of a text by which it is recognised in a request for a summary."""
_TURN = re.compile(r"^\[turn (\d+)\]", re.MULTILINE)


class Round(Struct, frozen=True, kw_only=True):
    """One answer: its text and calls, and which of the session's calls it is; -1 if it was not recorded."""

    text: str
    calls: tuple[Call, ...] = ()
    exchange: int = -1


class Recorded(Struct, frozen=True, kw_only=True):
    """A recorded session as a framework can play it."""

    name: str
    source: str
    messages: tuple[Message, ...]
    questions: tuple[str, ...]
    turns: tuple[tuple[Round, ...], ...]
    """For each question, the model's answers until it calls no more tools."""
    results: tuple[str, ...]
    tools: tuple[str, ...]
    uses: Mapping[int, Sequence[LaterUse]]
    """By exchange, what its answer names of results that came before."""


def recorded_of(source: str, script: ReplayScript) -> Recorded:
    """Return a session as turns of a user; words that came along with results are said in the next turn."""
    results, tools = list[str](), dict[str, None]()
    told = {
        result.call_id: "\n".join(texts_of_result(result))
        for message in script.messages
        for result in message.results
    }
    questions, turns = list[str](), list[list[Round]]()
    answers = [at for at, message in enumerate(script.messages) if message.role == "assistant"]
    first = 0
    for exchange, at in enumerate(answers):
        said = "\n".join(
            message.text for message in script.messages[first:at] if message.role != "tool" and message.text
        )
        first = at + 1
        if said or not turns:
            questions.append(f"[turn {len(turns) + 1}] {said or 'Go on.'}")
            turns.append([])
        message, calls = script.messages[at], list[Call]()
        for call in message.calls:
            if call.id not in told:
                continue
            name = re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:60]
            tools[name] = None
            calls.append(Call(name, _arguments(call.arguments) | {RESULT: len(results)}))
            results.append(told[call.id])
        turns[-1].append(Round(text=message.text or "Going on.", calls=tuple(calls), exchange=exchange))
    return Recorded(
        name=script.name,
        source=source,
        messages=script.messages,
        questions=tuple(questions),
        turns=tuple(map(tuple, turns)),
        results=tuple(results),
        tools=tuple(tools),
        uses=_uses(script),
    )


def texts_of_result(result: Any) -> Iterator[str]:  # noqa: ANN401 - a part of a message
    """Yield the texts of a tool result."""
    yield result.text


def _arguments(raw: str) -> dict[str, Any]:
    try:
        told = json.loads(raw)
    except ValueError:
        return {"input": raw}
    return told if isinstance(told, dict) else {"input": told}


def _uses(script: ReplayScript) -> dict[int, list[LaterUse]]:
    turn_of, found = script.turn_of(), defaultdict[int, list[LaterUse]](list)
    for use in uses_of(script.messages):
        at = turn_of[use.number - 1]
        if turn_of[use.origin.number - 1] < at:
            found[at].append(use)
    return found


class RecordedModel:
    """Answers as recorded; `exchanges` has for each of the agent's requests which call of the session it is."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._turn, self._round = 0, 0
        self._summary = ""
        self.exchanges: list[int] = []

    def __call__(self, seen: Seen) -> Answer:
        """Return the recorded answer, or a summary of the messages that a request shows."""
        if not is_of_agent(seen):
            self._summary = self._summarised(_shown(messages_in(seen.body)))
            return Say(self._summary)
        marked = _TURN.findall(said_last(messages_in(seen.body)))
        if marked and int(marked[-1]) != self._turn:
            self._turn, self._round = int(marked[-1]), 0
        rounds = self._recorded.turns[self._turn - 1]
        if self._round >= len(rounds):
            self.exchanges.append(-1)
            return Say("That is all for now.")
        now = rounds[self._round]
        self._round += 1
        self.exchanges.append(now.exchange)
        return CallTools(now.calls, text=now.text) if now.calls else Say(now.text)

    def _summarised(self, shown: str) -> str:
        messages = tuple(message for message in self._recorded.messages if _is_in(message, shown))
        previous = self._summary if self._summary and self._summary[:_PROBE] in shown else ""
        request = SummaryRequest(messages=messages, max_tokens=_SUMMARY_TOKENS, previous=previous)
        return extract(request, tokenizer_for("o200k")) or "Nothing of note so far."


def _shown(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return all texts of a request, as they read."""
    return "\n".join(
        text
        for message in decode_messages([msgspec.json.encode(each) for each in messages], "openai_chat")
        for text in texts_of(message)
    )


def _is_in(message: Message, shown: str) -> bool:
    return any(text.strip()[:_PROBE] in shown for text in texts_of(message) if text.strip())


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one session in one arm; money in nano-dollars."""

    session: str
    source: str
    framework: str
    arm: Compaction
    window: int
    model: str
    questions: int
    turns: int
    requests: int
    refused: int
    summaries: int
    largest: int
    cost: int
    rework: int
    uses: int
    in_view: int
    error: str = ""

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """What it is the outcome of."""
        return self.framework, self.arm, self.session, self.window, self.model

    @property
    def total(self) -> int:
        """What it cost, rework included."""
        return self.cost + self.rework


def play(recorded: Recorded, framework: Framework, arm: Compaction, *, window: int, model: str) -> Outcome:
    """Let a framework play a session; raises Unavailable if it cannot be installed."""
    count, script, python = tokenizer_for("o200k").count, RecordedModel(recorded), framework.python(arm)
    with (
        tempfile.TemporaryDirectory() as folder,
        Provider(
            script, count=count, context_lengths={model: window}, default_context=window, now=standing
        ) as provider,
    ):
        file = Path(folder) / "session.json"
        told = {
            "system": SYSTEM,
            "tools": recorded.tools,
            "questions": recorded.questions,
            "results": recorded.results,
        }
        file.write_text(json.dumps(told))
        flags = {
            "--base-url": provider.anthropic_base_url,
            "--compaction": arm,
            "--turns": str(len(recorded.questions)),
            "--model": model,
            "--window": str(window),
            "--recorded": str(file),
        }
        done = run_worker(
            [str(python), str(WORKERS / framework.worker), *(word for pair in flags.items() for word in pair)]
        )
        requests = provider.requests
    asked = [seen for seen in requests if seen.answer is not None and is_of_agent(seen)]
    bill = bill_of(requests, model, count=count, window=window)
    uses = in_view = rework = 0
    for seen, exchange in zip(asked, script.exchanges, strict=True):
        shown, due = _shown(messages_in(seen.body)), recorded.uses.get(exchange, ())
        lost = [use for use in due if find_words(use.text, shown) < 0]
        uses, in_view = uses + len(due), in_view + len(due) - len(lost)
        rework += _recalls(lost, prompt=count(shown), model=model)
    return Outcome(
        session=recorded.name,
        source=recorded.source,
        framework=framework.name,
        arm=arm,
        window=window,
        model=model,
        questions=len(recorded.questions),
        turns=done.turns,
        requests=len(asked),
        refused=sum(seen.refusal is not None for seen in requests),
        summaries=bill.summaries,
        largest=bill.largest,
        cost=bill.cost or 0,
        rework=rework,
        uses=uses,
        in_view=in_view,
        error=done.error,
    )


def _recalls(lost: Sequence[LaterUse], *, prompt: int, model: str) -> int:
    """Return what it costs to recall each result that something is missing of."""
    count, found = tokenizer_for("o200k").count, load_registry().find(model)
    texts = dict.fromkeys(use.origin.text for use in lost)
    return sum(cost_of(Usage(cache_read=prompt, cache_write=count(text)), found) or 0 for text in texts)


def play_all(asked: argparse.Namespace) -> None:
    """Append what is not there yet, until the time is up."""
    known, until = {each.key for each in read(asked.file)}, time.monotonic() + 60 * asked.minutes
    chosen = [each for each in FRAMEWORKS if each.name in (asked.names or NAMES)]
    for source, script in islice(sampled(asked.sessions, least_calls=LEAST_CALLS), asked.skip, None):
        recorded = recorded_of(source, script.beginning(asked.calls))
        for window in asked.windows:
            for framework in chosen:
                for arm in ARMS:
                    key = (framework.name, arm, recorded.name, window, asked.model)
                    if key in known or time.monotonic() > until:
                        continue
                    try:
                        outcome = play(recorded, framework, arm, window=window, model=asked.model)
                    except Unavailable as reason:
                        print(f"{framework.name} is left out: {reason}", file=sys.stderr)
                        continue
                    with asked.file.open("ab") as out:
                        out.write(msgspec.json.encode(outcome) + b"\n")
                    print(
                        *key,
                        f"{outcome.turns} of {outcome.questions}",
                        outcome.error,
                        file=sys.stderr,
                        flush=True,
                    )


def read(file: Path) -> list[Outcome]:
    """Return what was played so far."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Outcome) for line in file.read_bytes().splitlines()]


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a row for each framework and window: Lowwater beside its own compaction, on sessions that both answered to the end."""
    by_key = {each.key: each for each in outcomes}
    pairs: dict[tuple[str, int, str], list[tuple[Outcome, Outcome]]] = defaultdict(list)
    unfinished: dict[tuple[str, int, str], list[int]] = defaultdict(lambda: [0, 0])
    for ours in outcomes:
        own = by_key.get((ours.framework, "own", ours.session, ours.window, ours.model))
        if ours.arm != "lowwater" or own is None:
            continue
        group = (ours.framework, ours.window, ours.model)
        for side, each in enumerate((own, ours)):
            unfinished[group][side] += each.turns < each.questions
        if own.turns == own.questions == ours.turns:
            pairs[group].append((own, ours))
    yield (
        "| framework | window | sessions both finished | not finished: its own | Lowwater | bill, Lowwater ÷ its own | 95 % | with rework | 95 % "
        "| uses in view, its own | Lowwater | refused, its own | Lowwater | summary calls, its own | Lowwater |"
    )
    yield "|---" * 15 + "|"
    for group in sorted(unfinished):
        yield _row(group, pairs[group], unfinished[group])


def _row(
    group: tuple[str, int, str], pairs: Sequence[tuple[Outcome, Outcome]], unfinished: Sequence[int]
) -> str:
    bills = [(own.cost, ours.cost) for own, ours in pairs]
    totals = [(own.total, ours.total) for own, ours in pairs]
    both = [[pair[side] for pair in pairs] for side in (0, 1)]
    cells = [group[0], f"{group[1]:,}", str(len(pairs)), *map(str, unfinished)]
    for money in (bills, totals):
        cells += [f"{ratio(money):.3f}" if money else "–", interval(money)]
    cells += [f"{sum(each.in_view for each in of)} of {sum(each.uses for each in of)}" for of in both]
    cells += [str(sum(each.refused for each in of)) for of in both]
    cells += [str(sum(each.summaries for each in of)) for of in both]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Play sessions, or print what was played."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play")
    playing.add_argument("file", type=Path)
    playing.add_argument("names", nargs="*")
    playing.add_argument("--sessions", type=int, default=SESSIONS)
    playing.add_argument("--skip", type=int, default=0, help="leave the first of them out")
    playing.add_argument("--calls", type=int, default=CALLS)
    playing.add_argument("--windows", type=lambda text: tuple(map(int, text.split(","))), default=WINDOWS)
    playing.add_argument("--model", default=MODEL)
    playing.add_argument("--minutes", type=float, default=60.0)
    shown = commands.add_parser("table")
    shown.add_argument("file", type=Path)
    asked = parser.parse_args()
    if asked.command == "table":
        print("\n".join(table(read(asked.file))))
    elif not CANONICAL.exists():
        print(ABSENT)
    else:
        play_all(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
