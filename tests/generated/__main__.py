"""Prints a generated session: `python -m tests.generated --kind coding --seed 7 --turns 120 > file.jsonl`."""

import argparse
import sys
from typing import get_args

from tests.generated import Kind, generate_session


def main() -> None:
    """Write one session to standard output in the canonical form."""
    parser = argparse.ArgumentParser(prog="python -m tests.generated", description=__doc__)
    parser.add_argument("--kind", choices=get_args(Kind), default="coding")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--turns", type=int, help="calls of the model; 60 if no limit is given")
    parser.add_argument("--target-tokens", type=int, help="size of the whole prompt at the end")
    given = parser.parse_args()
    session = generate_session(
        given.kind, seed=given.seed, turns=given.turns, target_tokens=given.target_tokens
    )
    sys.stdout.buffer.write(session.as_canonical_jsonl())


if __name__ == "__main__":
    main()
