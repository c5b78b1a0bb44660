"""What recorded sessions cost under every policy of the real engine, and how much of what they use is still in view.

    .venv/bin/python -m bench.policies [MODEL] [--keyless] [--generated]

Every recorded session with times and at least 60 calls is played through the library: the messages as they were
recorded, at the times they were recorded; or, with `--generated`, sessions of the project's own generator. A call is billed as the provider's cache rules say (`economics`), a summary as
a call that rides the cached prefix, and each later use of something that is no longer in the view as one recall: a call
over the cached prompt and a write of the content.
"""

import sys
from collections.abc import Iterator, Sequence
from multiprocessing import Pool
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from bench.transcripts import ABSENT, CANONICAL, Recorded, Session, sessions
from bench.uses import Reading, Use, find
from lowwater.compact.summary import extract
from lowwater.decide.policies import POLICIES
from lowwater.economics.bill import cost_of
from lowwater.load.registry import load_registry
from lowwater.load.tokenizer import tokenizer_for
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.playing import as_completion
from lowwater.testing.sessions import Kind, generate_session
from lowwater.values.message import texts_of
from lowwater.values.settings import OutputSettings, Settings
from lowwater.values.summaries import SummaryRequest, Written
from lowwater.values.usage import Usage
from lowwater.wire.formats import decode_messages, encode_messages
from lowwater.wiring.library import Lowwater
from lowwater.wiring.request import PreparedRequest

OURS = "rent-or-buy"
TOKENIZER = tokenizer_for("o200k")
MODEL = "claude-opus-4-5"
LEAST_CALLS = 60
KINDS: tuple[Kind, ...] = ("coding", "research", "support")
GENERATED, TURNS = 10, 150
"""Seeds of each kind, and calls of each session."""
_INSTRUCTION = 400
_TTL = 300.0


class Outcome(Struct, kw_only=True):
    """What one session, or many together, came to; money in nano-dollars."""

    calls: int = 0
    cost: int = 0
    rework: int = 0
    summaries: int = 0
    compactions: int = 0
    uses: int = 0
    kept: int = 0

    @property
    def total(self) -> int:
        """Calls, summaries and rework."""
        return self.cost + self.rework + self.summaries

    def add(self, other: "Outcome") -> None:
        """Add another."""
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


class StandIn:
    """Writes what the extractive summarizer would, and counts as a model: as long, and as faithful, for every policy."""

    NAME = "stand-in"

    def __init__(self, model: str) -> None:
        self.model = model

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the extractive summary."""
        return Written(text=extract(request, TOKENIZER), by=self.NAME)


class Playing:
    """One session under one policy."""

    def __init__(self, recorded: Session, policy: str, model: str, *, keyless: bool = False) -> None:
        self._clock = ScriptedClock()
        quiet = Settings(output=OutputSettings(quiet=True))
        self._session = Lowwater(
            store="memory:",
            model=model,
            policy=policy,
            clock=self._clock,
            summarizer=() if keyless else StandIn(model),
            settings=quiet,
        ).session("bench")
        self._model = load_registry().find(model)
        self._recorded = recorded
        self._outcome = Outcome()
        self._called = 0.0

    def play(self) -> Outcome:
        """Play every call of the session."""
        lines = [line for line in self._recorded.messages if line.kind != "compact_summary"]
        uses = _by_turn(Reading([line.message for line in lines]))
        turn, new = 0, list[Any]()
        for line in lines:
            assert line.message.wire is not None
            raw = Raw(line.message.wire.raw)
            if line.message.role != "assistant" or not new:
                new.append(raw)
                continue
            turn += 1
            self._clock.advance(max(0.0, (line.at or 0.0) - self._clock.now()))
            self._session.append(new)
            self._call(uses.get(turn, []), raw, output=TOKENIZER.count("".join(texts_of(line.message))))
            new = []
        return self._outcome

    def _call(self, uses: Sequence[Use], answer: Raw, *, output: int) -> None:
        before = self._session.status().prompt
        compactions = self._session.status().compaction_count
        request = self._session.prepare()
        usage = replace(self._session.expected_usage(), output=output)
        self._outcome.calls += 1
        self._outcome.cost += self._cost(usage)
        if self._session.status().compaction_count > compactions:
            self._compacted(before)
        self._use(uses, request, usage.prompt)
        self._called = self._clock.now()
        self._session.record(as_completion(answer, usage, self._model.name))

    def _compacted(self, before: int) -> None:
        event = self._session.last_compaction()
        assert event is not None
        self._outcome.compactions += 1
        if event.summarizer == StandIn.NAME:
            warm = self._clock.now() - self._called <= _TTL
            usage = Usage(
                cache_read=before if warm else 0,
                uncached=_INSTRUCTION if warm else before + _INSTRUCTION,
                output=event.summary_tokens,
            )
            self._outcome.summaries += self._cost(usage)

    def _use(self, uses: Sequence[Use], request: PreparedRequest, prompt: int) -> None:
        if not uses:
            return
        shown = "\0".join(text for message in request.messages for text in texts_of(message))
        for use in uses:
            kept = find(use.text, shown, 0, len(shown)) >= 0
            self._outcome.uses += 1
            self._outcome.kept += kept
            if not kept:
                content = TOKENIZER.count(use.result.text)
                self._outcome.rework += self._cost(Usage(cache_read=prompt, cache_write=content))

    def _cost(self, usage: Usage) -> int:
        cost = cost_of(usage, self._model)
        assert cost is not None, f"no price is known for {self._model.name}"
        return cost


def _by_turn(reading: Reading) -> dict[int, list[Use]]:
    found: dict[int, list[Use]] = {}
    for use in reading.uses():
        found.setdefault(use.result.turn + use.later, []).append(use)
    return found


def _played(task: tuple[Session, str, str, bool]) -> tuple[str, Outcome]:
    recorded, policy, model, keyless = task
    return policy, Playing(recorded, policy, model, keyless=keyless).play()


def _chosen() -> Iterator[Session]:
    for session in sessions():
        lines = session.messages
        calls = sum(line.message.role == "assistant" for line in lines)
        if calls >= LEAST_CALLS and all(line.at for line in lines if line.message.role == "assistant"):
            yield session


def _generated() -> Iterator[Session]:
    for kind in KINDS:
        for seed in range(1, 1 + GENERATED):
            made = generate_session(kind, seed=seed, turns=TURNS)
            raws = encode_messages(made.messages, "openai_chat")
            lines = (
                Recorded(message=message, kind="", model=made.model, usage=b"", at=at)
                for message, at in zip(decode_messages(raws, "openai_chat"), made.times, strict=True)
            )
            yield Session(name=made.id, id=made.id, agent="", messages=tuple(lines))


def main() -> int:
    """Print a table, and return 1 if a policy that keeps as much is cheaper than rent-or-buy."""
    generated = "--generated" in sys.argv
    if not generated and not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    keyless = "--keyless" in sys.argv
    model = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), MODEL)
    chosen = list(_generated() if generated else _chosen())
    totals = {policy.name: Outcome() for policy in POLICIES}
    tasks = [(session, policy, model, keyless) for session in chosen for policy in totals]
    with Pool() as pool:
        for done, (policy, outcome) in enumerate(pool.imap_unordered(_played, tasks, chunksize=4), start=1):
            totals[policy].add(outcome)
            print(f"\r{done} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    how = ", without a model for summaries" if keyless else ""
    print(
        f"{len(chosen)} {'generated' if generated else 'recorded'} sessions on {model}, {totals[OURS].calls:,} calls{how}\n"
    )
    print("| policy | total | calls | summaries | rework | ÷ rent-or-buy | compactions | uses in view |")
    print("|---|---|---|---|---|---|---|---|")
    ours = totals[OURS]
    for policy, sums in sorted(totals.items(), key=lambda pair: pair[1].total):
        money = [sums.total, sums.cost, sums.summaries, sums.rework]
        dollars = " | ".join(f"${amount / 1e9:,.2f}" for amount in money)
        share = sums.kept / max(1, sums.uses)
        print(f"| {policy} | {dollars} | {sums.total / ours.total:.3f} | {sums.compactions} | {share:.1%} |")
    beaten = [name for name, sums in totals.items() if sums.total < ours.total and sums.kept >= ours.kept]
    print(f"\nPolicies that keep as much and cost less: {', '.join(beaten) or 'none'}.")
    return 1 if beaten else 0


if __name__ == "__main__":
    sys.exit(main())
