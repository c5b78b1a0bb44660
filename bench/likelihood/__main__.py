"""How likely a recorded action still is under a compacted view, by a local open-weight model.

.venv/bin/python -m bench.likelihood points          # choose the decision points anew by the rule
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import msgspec

from bench.likelihood.points import BANDS, points
from bench.transcripts import ABSENT, CANONICAL

POINTS = Path(__file__).with_name("points.jsonl")


def write_points() -> None:
    """Write the decision points, and print how many there are by source and length."""
    found = points()
    POINTS.write_bytes(b"".join(msgspec.json.encode(point) + b"\n" for point in found))
    counts = Counter((point.source, point.band) for point in found)
    for source in sorted({point.source for point in found}):
        print(f"{source:<28}" + "".join(f"{counts[source, band]:>6}" for band in BANDS))
    print(f"{len(found)} decision points")


def main() -> int:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("points", help="choose the decision points")
    parser.parse_args()
    if not CANONICAL.is_dir():
        print(ABSENT)
        return 0
    write_points()
    return 0


if __name__ == "__main__":
    sys.exit(main())
