"""A 60-turn tool session beyond the window with each framework's real agent: with Lowwater, its own compaction, none.

    .venv/bin/python -m bench.frameworks [NAME …] [--model MODEL] [--window N] [--turns N] [--json]

Nothing leaves the machine: a rules-checking provider answers by script. Frameworks that pin other versions run in
environments of their own (`bench/.envs`), made on first use. README.md in this folder says how a worker is added.
"""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from bench.frameworks.roster import FRAMEWORKS
from bench.frameworks.running import COMPACTIONS, Outcome, play
from bench.frameworks.table import session_words, stopped, table
from bench.peers.environment import Unavailable

MODEL, WINDOW, TURNS = "gpt-6.1-sol", 64_000, 60


def main(argv: Sequence[str] | None = None) -> int:
    told = _read(argv)
    outcomes: list[Outcome] = []
    absent: list[str] = []
    for framework in FRAMEWORKS:
        if told.names and framework.name.lower() not in {name.lower() for name in told.names}:
            continue
        if told.model.startswith("claude") and not framework.speaks_anthropic:
            absent.append(f"{framework.name} does not speak to {told.model} by itself.")
            continue
        try:
            for compaction in COMPACTIONS:
                outcomes.append(
                    play(framework, compaction, turns=told.turns, model=told.model, window=told.window)
                )
        except Unavailable as reason:
            absent.append(f"{framework.name} is not compared: {reason}")
    if told.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(outcomes)).decode() + "\n")
    else:
        _show(outcomes, absent, told)
    return int(bool(missed(outcomes, told.turns)))


def missed(outcomes: Sequence[Outcome], turns: int) -> list[str]:
    """Return what must not be: with Lowwater every request is legal, every turn is answered, nothing is lost."""
    said = []
    for outcome in outcomes:
        if outcome.compaction == "lowwater" and (outcome.refusals or outcome.turns < turns):
            said.append(
                f"{outcome.framework} with Lowwater: {outcome.refusals} refused, {outcome.turns} turns"
            )
        if outcome.compaction == "lowwater" and outcome.told.kept not in (None, outcome.facts):
            said.append(
                f"{outcome.framework} with Lowwater: its history holds {outcome.told.kept} of {outcome.facts} facts"
            )
    return said


def _show(outcomes: Sequence[Outcome], absent: Sequence[str], told: argparse.Namespace) -> None:
    print(f"{session_words(told.turns, told.window)} Prices and cache rules of {told.model}.\n")
    print("\n".join(table(outcomes, turns=told.turns)))
    print("\n" + "\n".join(f"- {line}" for line in (*stopped(outcomes), *absent)))
    print("\n".join(f"MISSED: {bound}" for bound in missed(outcomes, told.turns)))


def _read(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.frameworks")
    parser.add_argument("names", nargs="*", help="frameworks; all of them if none is named")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
