"""Time to the first byte and memory: the gateway, a pass-through proxy on its stack, and others' proxies, in one run."""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

import msgspec
from msgspec import Struct

from bench.gateway.conversations import Conversation
from bench.gateway.load import Timed, steadily, together
from bench.gateway.others import OTHERS, Missing
from bench.gateway.processes import Running, free_port, ours, running

RATE = 5.0
ROUNDS = 4
TURNS = 4


class Added(Struct, frozen=True, kw_only=True):
    """What a server adds to the first byte, in milliseconds above the pass-through proxy of the same run."""

    name: str
    requests: int
    failed: int
    p50_ms: float
    p99_ms: float
    added_p50_ms: float
    added_p99_ms: float


class Streams(Struct, frozen=True, kw_only=True):
    """Many streams at once through one server."""

    name: str
    streams: int
    failed: int
    p50_ms: float
    memory_before_mb: int
    memory_mb: tuple[int, ...]
    """After each turn of all conversations."""


def at(times: Sequence[float], percent: int) -> float:
    """Return a percentile in milliseconds."""
    if percent == 50 or len(times) < 2:
        return round(1000 * median(times), 2)
    return round(1000 * quantiles(times, n=100, method="inclusive")[percent - 1], 2)


def measure(targets: dict[str, str], *, tokens: int, count: int, rounds: int) -> list[Added]:
    """Time requests at a steady rate, the targets by turns; the first request of each conversation is not counted."""
    talks = {name: [Conversation(number, tokens) for number in range(8)] for name in targets}
    timed: dict[str, list[Timed]] = {name: [] for name in targets}
    for name, url in targets.items():
        _say(f"{name}: first sight of {len(talks[name])} conversations of {talks[name][0].tokens:,} tokens")
        asyncio.run(steadily(url, talks[name], count=len(talks[name]), rate=RATE))
    for turn in range(rounds):
        for name, url in targets.items():
            _say(f"round {turn + 1} of {rounds}: {count} requests to {name}")
            timed[name] += asyncio.run(steadily(url, talks[name], count=count, rate=RATE))
    base = [each.first for each in timed["pass-through"]]
    return [_added(name, timed[name], base) for name in targets]


def _added(name: str, timed: Sequence[Timed], base: Sequence[float]) -> Added:
    firsts = [each.first for each in timed]
    return Added(
        name=name,
        requests=len(timed),
        failed=sum(not each.ok for each in timed),
        p50_ms=at(firsts, 50),
        p99_ms=at(firsts, 99),
        added_p50_ms=round(at(firsts, 50) - at(base, 50), 2),
        added_p99_ms=round(at(firsts, 99) - at(base, 99), 2),
    )


def stream(name: str, server: Running, *, streams: int, tokens: int) -> Streams:
    """Open many streams at once, turn after turn, and see what memory that takes."""
    _say(f"{name}: {streams} streams of {tokens:,} tokens")
    conversations = [Conversation(1_000 + number, tokens) for number in range(streams)]
    before = server.memory()
    timed: list[Timed] = []
    memory: list[int] = []
    for _ in range(TURNS):
        last = asyncio.run(together(server.url, conversations))
        timed += last
        memory.append(server.memory() >> 20)
    return Streams(
        name=name,
        streams=streams,
        failed=sum(not each.ok for each in timed),
        p50_ms=at([each.first for each in last], 50),
        memory_before_mb=before >> 20,
        memory_mb=tuple(memory),
    )


def main() -> None:
    """Measure, print the tables, and fail if the gateway adds more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=50, help="requests to each server in a round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--only-ours", action="store_true", help="leave other projects' proxies out")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    missing: list[Missing] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = free_port()
        upstream = stack.enter_context(running(ours("bench.gateway.upstream", port), port))
        servers = _ours(stack, folder, upstream.url)
        if not given.only_ours:
            for other in OTHERS:
                _say(f"starting {other.name}")
                try:
                    servers[other.name] = other.start(stack, folder, upstream.url)
                except (RuntimeError, OSError) as error:
                    missing.append(Missing(name=other.name, why=str(error)))
        added = measure(
            {name: server.url for name, server in servers.items()},
            tokens=given.tokens,
            count=given.requests,
            rounds=given.rounds,
        )
        names = ("pass-through", "lowwater")
        many = [stream(name, servers[name], streams=given.streams, tokens=100_000) for name in names]
    _report(added, many, missing, as_json=given.json)
    own = next(each for each in added if each.name == "lowwater")
    held = own.added_p50_ms < 10 and own.added_p99_ms < 50 and not own.failed and not many[-1].failed
    sys.exit(0 if held else 1)


def _ours(stack: ExitStack, folder: Path, upstream: str) -> dict[str, Running]:
    plain, gateway = free_port(), free_port()
    command = [
        "lowwater",
        "serve",
        "--port",
        str(gateway),
        "--store",
        f"sqlite:///{folder}/bench.db",
        "--no-log",
    ]
    return {
        "pass-through": stack.enter_context(
            running(ours("bench.gateway.passthrough", plain, "--upstream", upstream), plain)
        ),
        "lowwater": stack.enter_context(
            running(
                [
                    sys.executable,
                    "-m",
                    *command,
                    "--anthropic-upstream",
                    upstream,
                    "--openai-upstream",
                    upstream,
                ],
                gateway,
            )
        ),
    }


def _report(
    added: Sequence[Added], many: Sequence[Streams], missing: Sequence[Missing], *, as_json: bool
) -> None:
    if as_json:
        print(msgspec.json.encode({"added": added, "streams": many, "missing": missing}).decode())
        return
    print("| proxy | requests | failed | first byte p50 ms | p99 ms | added p50 ms | added p99 ms |")
    print("|---|---|---|---|---|---|---|")
    for each in added:
        print(
            f"| {each.name} | {each.requests} | {each.failed} | {each.p50_ms} | {each.p99_ms} "
            f"| {each.added_p50_ms} | {each.added_p99_ms} |"
        )
    print("\n| proxy | streams at once | failed | first byte p50 ms | MB before | MB after each turn |")
    print("|---|---|---|---|---|---|")
    for row in many:
        print(
            f"| {row.name} | {row.streams} | {row.failed} | {row.p50_ms} | {row.memory_before_mb} "
            f"| {', '.join(map(str, row.memory_mb))} |"
        )
    for gone in missing:
        print(f"\n{gone.name} is not in the table: {gone.why}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
