"""The real packages of peers beside Lowwater, their models and the optimum, on the same sessions with the same summariser.

    .venv/bin/python -m bench.real_peers [--peers A,B | --without A,B] [--sheets A,B]
            [--no-generated] [--recorded N] [--limit SECONDS] [--no-usage] [--json FILE|-]

Each peer runs in an environment of its own (`bench/.envs`), made on first use. What it would send before each call is
billed by the project's cost engine; nothing but packages is fetched, and no model is asked.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from bench.peers.catalogue import VARIANTS, Variant
from bench.peers.stand_in import SIZE
from bench.peers.worker import TRIGGER, WINDOW
from bench.real_peers_cases import generated, recorded
from bench.real_peers_play import Terms
from bench.real_peers_rows import Money, Row
from bench.real_peers_run import Group, compare
from bench.real_peers_table import page
from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.models import load_registry
from lowwater.errors import LowwaterError
from lowwater.lab.replay.script import SHEETS, model_named

FIRST = "openai-30m"
"""Reads at 0.10, writes at 1.25, a window that holds the session, and tokens that are nearly o200k's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and print it."""
    asked = _parser().parse_args(arguments)
    variants = _chosen(asked.peers, asked.without)
    sheets = _priced(asked.sheets)
    terms = Terms(limit=asked.limit, reports_usage=not asked.no_usage)
    groups: list[Group] = []
    if not asked.no_generated:
        groups.append(compare("The generated session", [generated()], variants, sheets, terms=terms))
    cases = recorded(asked.recorded)
    if cases:
        name = f"{len(cases)} recorded sessions"
        groups.append(compare(name, cases, variants, sheets, terms=terms))
    elif asked.recorded and not CANONICAL.is_dir():
        print(ABSENT, file=sys.stderr)
    written = msgspec.json.format(msgspec.json.encode(as_json(groups)), indent=1)
    if asked.json == "-":
        sys.stdout.write(written.decode() + "\n")
        return 0
    if asked.json:
        Path(asked.json).write_bytes(written)
    print(page(groups, sheets))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.real_peers", description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", default="", help="only these, by name; without it all")
    parser.add_argument("--without", default="", help="not these, by name")
    others = ",".join([FIRST, *(name for name in SHEETS if name != FIRST)])
    parser.add_argument("--sheets", default=others, help="price sheets as `lowwater replay` names them")
    parser.add_argument("--no-generated", action="store_true", help="leave the generated session out")
    parser.add_argument("--recorded", type=int, default=4, help="how many recorded sessions to play too")
    parser.add_argument(
        "--limit", type=float, default=Terms().limit, help="seconds a peer may take for a session"
    )
    parser.add_argument(
        "--no-usage", action="store_true", help="tell peers nothing of what requests measured"
    )
    parser.add_argument("--json", default="", help="write all figures there, too; - prints only them")
    return parser


def _chosen(names: str, without: str) -> list[Variant]:
    """Return the peers of these names, or all, but for some."""
    known = {variant.name: variant for variant in VARIANTS}
    wanted, unwanted = ([name for name in each.split(",") if name] for each in (names, without))
    for name in (*wanted, *unwanted):
        if name not in known:
            sys.exit(f"there is no peer {name!r}; there are {', '.join(known)}")
    return [known[name] for name in wanted or known if name not in unwanted]


def _priced(names: str) -> list[str]:
    """Return the price sheets of these names."""
    sheets = [name for name in names.split(",") if name]
    try:
        for name in sheets or [""]:
            model_named(name, load_registry())
    except LowwaterError as error:
        sys.exit(str(error))
    return sheets


def as_json(groups: Sequence[Group]) -> dict[str, Any]:
    """Return all figures, with the ratios that the tables show."""
    return {
        "date": date.today().isoformat(),
        "trigger": TRIGGER,
        "window": WINDOW,
        "summary_characters": SIZE,
        "groups": [
            {
                "name": group.name,
                "sessions": group.sessions,
                "requests": group.requests,
                "peers": {row.name: _row(row) for row in group.rows},
                "each": [{row.name: _row(row) for row in rows} for rows in group.each],
            }
            for group in groups
        ],
    }


def _row(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(row)
    return fields | {"money": {money.sheet: _money(money) for money in row.money}}


def _money(money: Money) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(money)
    return fields | {
        "over_never": money.over_never,
        "over_optimum": money.over_optimum,
        "over_model": money.over_model,
    }


if __name__ == "__main__":
    sys.exit(main())
