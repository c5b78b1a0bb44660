"""One framework's session in one arm: the provider here, the worker in a process of its own."""

import os
import subprocess
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from bench.frameworks.billing import Bill, bill_of, moved_prefixes, standing
from bench.frameworks.roster import WORKERS, Framework
from bench.frameworks.scripted import ScriptedModel, is_of_agent
from bench.frameworks.task import facts_until
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.testing.provider import Provider

ROOT = Path(__file__).parents[2]
LONGEST = 900.0
"""Seconds that a worker may take."""

Compaction = Literal["lowwater", "own", "none"]
COMPACTIONS: tuple[Compaction, ...] = get_args(Compaction)


class Told(Struct, frozen=True, kw_only=True):
    """What a worker printed: `bench.frameworks.worker.Report`."""

    turns: int = 0
    error: str = ""
    version: str = ""
    how: str = ""
    kept: int | None = None
    compactions: int | None = None
    recorded: dict[str, int] = {}


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one session."""

    framework: str
    compaction: Compaction
    turns: int
    """Turns that were answered."""
    refusals: int
    """Requests that broke a rule of the provider, the window's size included."""
    refused: str
    """The name of the first rule that was broken; empty if none was."""
    moved: int
    """How often the prefix of a turn was not that of the turn before."""
    in_view: int
    """Facts read by the last turn that its last request still holds."""
    facts: int
    bill: Bill
    told: Told


def play(
    framework: Framework, compaction: Compaction, *, turns: int = 60, model: str, window: int
) -> Outcome:
    """Let a framework play the session; raises Unavailable if it cannot be installed."""
    count, script, python = tokenizer_for("o200k").count, ScriptedModel(), framework.python(compaction)
    with Provider(
        script, count=count, context_lengths={model: window}, default_context=window, now=standing
    ) as provider:
        flags = {
            "--base-url": provider.anthropic_base_url,
            "--compaction": compaction,
            "--turns": str(turns),
            "--model": model,
            "--window": str(window),
        }
        command = [
            str(python),
            str(WORKERS / framework.worker),
            *(word for pair in flags.items() for word in pair),
        ]
        told = run_worker(command)
        requests = provider.requests
    asked = [seen for seen in requests if seen.answer is not None and is_of_agent(seen)]
    refused = [seen.refusal.rule for seen in requests if seen.refusal is not None]
    facts = facts_until(script.step)
    return Outcome(
        framework=framework.name,
        compaction=compaction,
        turns=told.turns,
        refusals=len(refused),
        refused=refused[0] if refused else "",
        moved=moved_prefixes(requests),
        in_view=sum(fact.encode() in asked[-1].raw for fact in facts) if asked else 0,
        facts=len(facts),
        bill=bill_of(requests, model, count=count, window=window),
        told=told,
    )


def run_worker(command: list[str]) -> Told:
    """Run a worker, and return what it printed."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "LOWWATER_STORE": "memory:",
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
    }
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=LONGEST, check=False
    )
    lines = done.stdout.strip().splitlines()
    if not lines:
        said = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        return Told(error=f"the worker printed nothing: {said[0][:300]}")
    return msgspec.json.decode(lines[-1], type=Told)
