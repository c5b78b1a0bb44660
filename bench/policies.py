"""What recorded sessions cost under every policy of the real engine, and how much of what they use is still in view.

    .venv/bin/python -m bench.policies [MODEL] [--keyless] [--generated]

Every recorded session with times and at least 60 calls is played through the library: the messages as they were
recorded, at the times they were recorded; or, with `--generated`, sessions of the project's own generator. A call is billed as the provider's cache rules say (`economics`), a summary as
a call that rides the cached prefix, and each result that a call uses and that is no longer in the view as one recall: a
call over the cached prompt and a write of the content (`lab/replay/live.py`). The bound is what rent-or-buy cannot cost less
than (`lab/replay/engine_bound.py`).
"""

import sys
from collections.abc import Iterator
from multiprocessing import Pool

from msgspec import Struct
from msgspec.structs import replace

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.adapters.models import load_registry
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.policies.registry import POLICIES
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.course_replay import PolicyOutcome
from lowwater.lab.replay.engine_bound import EngineBound
from lowwater.lab.replay.live import CONFIGURATIONS, EngineRun, play_with_engine
from lowwater.lab.replay.script import ReplayScript, course_for, script_of
from lowwater.logs.recording import RecordedMessage, Recording
from tests.generated import Kind, generate_session

OURS = "rent-or-buy"
MODEL = "claude-opus-4-5"
LEAST_CALLS = 60
KINDS: tuple[Kind, ...] = ("coding", "research", "support")
GENERATED, TURNS = 10, 150
"""Seeds of each kind, and calls of each session."""


class Sums(Struct, kw_only=True):
    """What many sessions together came to; money in nano-dollars."""

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

    def add(self, outcome: PolicyOutcome) -> None:
        """Add a session."""
        self.calls += outcome.cadence.turns
        self.cost += outcome.cost - outcome.summaries
        self.summaries += outcome.summaries
        self.rework += outcome.rework
        self.compactions += outcome.cadence.events
        self.uses += outcome.recall.uses
        self.kept += outcome.recall.in_view


class Job(Struct, frozen=True, kw_only=True):
    """One session under one policy."""

    script: ReplayScript
    policy: str
    model: str
    keyless: bool


def play(job: Job) -> PolicyOutcome:
    """Return what the session comes to; the hidden system prompts of recordings are left out."""
    course = course_for(job.script, (), model=job.model, recorded=job.model)
    part = EngineRun(
        policy=job.policy,
        model=load_registry().find(job.model),
        outputs=tuple(turn.output for turn in course.turns),
        configuration=replace(CONFIGURATIONS["keyless" if job.keyless else "own-model"], offers_recall=False),
    )
    return play_with_engine(job.script, uses_of(job.script.messages), part)


def bound(script: ReplayScript, model: str) -> int:
    """Return the lower bound of a session as `play` plays it."""
    course = course_for(script, (), model=model, recorded=model)
    return EngineBound(script, course, load_registry().find(model), offers_recall=False).least()


def _recorded() -> Iterator[ReplayScript]:
    for session in sessions():
        lines = session.messages
        calls = sum(line.message.role == "assistant" for line in lines)
        if calls >= LEAST_CALLS and all(line.at for line in lines if line.message.role == "assistant"):
            messages = (RecordedMessage(message=line.message, at=line.at, kind=line.kind) for line in lines)
            yield script_of(
                Recording(id=session.id, agent=session.agent, path=session.name, messages=tuple(messages))
            )


def generated_scripts(count: int = GENERATED * len(KINDS)) -> Iterator[ReplayScript]:
    """Yield so many sessions of the generator, of each kind in turn."""
    for seed in range(1, 1 + -(-count // len(KINDS))):
        for kind in KINDS[: count - (seed - 1) * len(KINDS)]:
            made = generate_session(kind, seed=seed, turns=TURNS)
            raws = encode_messages(made.messages, "openai_chat")
            messages = (
                RecordedMessage(message=message, at=at)
                for message, at in zip(decode_messages(raws, "openai_chat"), made.times, strict=True)
            )
            yield script_of(Recording(id=made.id, agent="", path="", messages=tuple(messages)))


def main() -> int:
    """Print a table, and return 1 if a policy that keeps as much is cheaper than rent-or-buy."""
    generated = "--generated" in sys.argv
    if not generated and not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    keyless = "--keyless" in sys.argv
    model = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), MODEL)
    chosen = list(generated_scripts() if generated else _recorded())
    totals = {policy.name: Sums() for policy in POLICIES}
    jobs = [
        Job(script=script, policy=policy, model=model, keyless=keyless)
        for script in chosen
        for policy in totals
    ]
    with Pool() as pool:
        for done, outcome in enumerate(pool.imap_unordered(play, jobs, chunksize=4), start=1):
            totals[outcome.policy].add(outcome)
            print(f"\r{done} of {len(jobs)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    how = ", without a model for summaries" if keyless else ""
    print(
        f"{len(chosen)} {'generated' if generated else 'recorded'} sessions on {model}, {totals[OURS].calls:,} calls{how}\n"
    )
    least = sum(bound(script, model) for script in chosen)
    print(
        "| policy | total | calls | summaries | rework | ÷ rent-or-buy | ÷ bound | compactions | uses in view |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ours = totals[OURS]
    for policy, sums in sorted(totals.items(), key=lambda pair: pair[1].total):
        money = [sums.total, sums.cost, sums.summaries, sums.rework]
        dollars = " | ".join(f"${amount / 1e9:,.2f}" for amount in money)
        share = sums.kept / max(1, sums.uses)
        ratios = f"{sums.total / ours.total:.3f} | {sums.total / least:.3f}"
        print(f"| {policy} | {dollars} | {ratios} | {sums.compactions} | {share:.1%} |")
    beaten = [name for name, sums in totals.items() if sums.total < ours.total and sums.kept >= ours.kept]
    print(f"\nPolicies that keep as much and cost less: {', '.join(beaten) or 'none'}.")
    return 1 if beaten else 0


if __name__ == "__main__":
    sys.exit(main())
