"""A gigabyte of logs through `lowwater audit`: how long it takes, how much memory, and that it can be interrupted.

    .venv/bin/python -m bench.gigabyte [--bytes 1000000000] [--at FOLDER]

The logs are generated sessions as Claude Code writes them: one record for each content block, with the call's usage in
every one of them. They are audited whole; then from an empty cache with an interrupt after a third of that time, and
once more to its end, which has to give the same report.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from lowwater.core.formats.codec import encode_messages
from tests.generated import GeneratedSession, generate_session

_DIFFERENT = 24
"""Sessions with texts of their own; more are the same again, later and under other names."""
_TOKENS = 180_000
_MOST_SECONDS, _MOST_MB = 300.0, 1_000
_INTERRUPTED = 130
_AUDIT = """
import resource, signal, sys
# A shell that runs this in the background has it ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["lowwater", "audit", *sys.argv[1:]]
from lowwater.cli import main
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


class Run(Struct, frozen=True, kw_only=True):
    """One audit."""

    status: int
    seconds: float
    megabytes: int
    report: dict[str, object]


def records(session: GeneratedSession, name: str, later: float) -> Iterator[dict[str, object]]:
    """Yield a session's records as Claude Code writes them."""
    number, parent = 0, None
    usages = iter(session.usages)
    for said, at in zip(session.messages, session.times, strict=True):
        message = msgspec.json.decode(encode_messages([said], "anthropic")[0])
        content, is_answer = message["content"], message["role"] == "assistant"
        pieces = [[block] for block in content] if is_answer and isinstance(content, list) else [content]
        if is_answer:
            usage = next(usages)
            message |= {"id": f"{name}-{number}", "type": "message", "model": session.model}
            message["usage"] = {
                "input_tokens": usage.uncached,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": usage.output,
            }
        for piece in pieces:
            yield {
                "type": message["role"],
                "message": message | {"content": piece},
                "uuid": f"{name}-{number}",
                "parentUuid": parent,
                "sessionId": name,
                "timestamp": f"{datetime.fromtimestamp(at + later, tz=UTC):%Y-%m-%dT%H:%M:%S}.000Z",
                "isSidechain": False,
                "userType": "external",
                "cwd": "/work",
                "version": "2.0.1",
            }
            parent, number = f"{name}-{number}", number + 1


def write(folder: Path, least: int) -> int:
    """Write at least so many bytes of logs, and return how many."""
    made = [
        generate_session("coding", seed=seed, target_tokens=_TOKENS, model="claude-opus-4-6")
        for seed in range(_DIFFERENT)
    ]
    size = number = 0
    while size < least:
        session, name = made[number % len(made)], f"session-{number:05}"
        project = folder / f"project-{number % 40:02}"
        project.mkdir(exist_ok=True)
        lines = records(session, name, 3_600.0 * number)
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        (project / f"{name}.jsonl").write_bytes(body)
        size, number = size + len(body), number + 1
    return size


def audited(folder: Path, cache: Path, *, interrupt_after: float | None = None) -> Run:
    """Audit a folder with a cache of its own."""
    env = os.environ | {"XDG_CACHE_HOME": str(cache), "TZ": "UTC"}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", _AUDIT, str(folder), "--json"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=interrupt_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    return Run(
        status=process.returncode,
        seconds=time.perf_counter() - began,
        megabytes=int(err.split()[-1]) // 1_024,
        report=json.loads(out) if out.strip() else {},
    )


def main() -> int:
    """Write the logs, audit them, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--at", type=Path, help="where to write the logs; a temporary folder by default")
    given = parser.parse_args()
    if given.at is not None and not given.at.is_dir():
        parser.error(f"--at: there is no folder {given.at}")
    with tempfile.TemporaryDirectory(dir=given.at) as place:
        folder, caches = Path(place) / "projects", Path(place)
        folder.mkdir()
        size = write(folder, given.bytes)
        files = sum(1 for _ in folder.glob("*/*.jsonl"))
        print(f"{size / 1e9:.2f} GB in {files:,} files", file=sys.stderr)
        whole = audited(folder, caches / "one")
        broken = audited(folder, caches / "two", interrupt_after=whole.seconds / 3)
        rest = audited(folder, caches / "two")
    same = _without_cache(whole.report) == _without_cache(rest.report)
    print("| audit | status | seconds | MB | files from the cache |\n|---|---|---|---|---|")
    for name, run in (("whole", whole), ("interrupted", broken), ("gone on", rest)):
        known = run.report.get("files_from_cache", "")
        print(f"| {name} | {run.status} | {run.seconds:.1f} | {run.megabytes} | {known} |")
    print(f"\n{size / 1e9:.2f} GB in {files:,} files; the same report: {'yes' if same else 'NO'}")
    held = whole.status == rest.status == 0 and broken.status == _INTERRUPTED and same
    return 0 if held and whole.seconds < _MOST_SECONDS and whole.megabytes < _MOST_MB else 1


def _without_cache(report: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in report.items() if name != "files_from_cache"}


if __name__ == "__main__":
    sys.exit(main())
