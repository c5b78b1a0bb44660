"""Makes the stores under `tests/stores/stores/`: `python make_stores.py NAME FOLDER`, with the Lowwater on PYTHONPATH.

It uses only what `lowwater` and `lowwater.testing` export, so that it runs with any version. For each version it writes a
SQLite file and a dump of a PostgreSQL database with the same two sessions, an export of each session, and what is known of
them: digests of their histories and views, and the next request and decision.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lowwater import Lowwater, Session, Settings, SummaryRequest, Written
from lowwater.session.internals import internals
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.postgres import postgres_server

MODEL, OTHER = "gpt-5", "claude-sonnet-4-5"
SESSIONS = ("work", "pictures")
_WORDS = (
    "harbour ledger tide anchor compass rope lantern chart sail mast keel buoy pilot signal crew deck".split()
)
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Curt:
    """A summarizer whose summaries are too short to be accepted, so that the next way is taken."""

    def summarize(self, request: SummaryRequest, /) -> Written:
        """Return the beginning of what is to be summarized."""
        said = "\n".join(message.text for message in request.messages)
        return Written(text=said[:60], by="curt", model=OTHER)


def library(address: str, clock: ScriptedClock) -> Lowwater:
    """Return the library as these stores are made and read with."""
    settings = Settings(compression=type(Settings().compression)(protect_last_n=4, max_view_tokens=2_400))
    return Lowwater(model=MODEL, store=address, settings=settings, clock=clock, summarizer=Curt())


def text(number: int, words: int) -> str:
    """Return so many words, different for each number."""
    return " ".join(
        f"{_WORDS[(number * 7 + word * word) % len(_WORDS)]}{number + word}" for word in range(words)
    )


def turn(session: Session, clock: ScriptedClock, number: int) -> None:
    """Ask, call a tool, and answer: two calls of the model, both recorded."""
    session.append(
        {
            "role": "user",
            "content": f"Question {number}: what is in src/part_{number % 5}.py? {text(number, 12)}",
        }
    )
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": json.dumps({"path": f"src/part_{number % 5}.py"})},
    }
    answered(session, clock, {"role": "assistant", "content": None, "tool_calls": [call]})
    session.append({"role": "tool", "tool_call_id": f"call_{number}", "content": text(number % 5, 60)})
    answered(session, clock, {"role": "assistant", "content": f"Answer {number}: {text(number + 100, 15)}"})


def answered(session: Session, clock: ScriptedClock, message: dict[str, Any]) -> None:
    """Prepare a call and record its answer, billed as expected."""
    clock.advance(30)
    session.prepare()
    billed = internals(session).expected_usage
    usage = {
        "prompt_tokens": billed.prompt,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": billed.cache_read},
    }
    session.record(
        {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage, "model": MODEL}
    )


def work(lowwater: Lowwater, clock: ScriptedClock) -> None:
    """Play a session with everything that can happen to a ledger."""
    session = lowwater.session("work", title="Work on the harbour", source="api")
    session.append({"role": "system", "content": "You answer questions about the harbour."})
    for number in range(1, 5):
        turn(session, clock, number)
    session.checkpoint("halfway")
    for number in range(5, 12):
        turn(session, clock, number)
    session.rewind("before-compaction-1")
    for number in range(12, 16):
        turn(session, clock, number)
    session.checkpoint("before the detour")
    turn(session, clock, 16)
    session.rewind("before the detour", discard_later=True)
    session.use(OTHER)
    for number in range(17, 22):
        turn(session, clock, number)
    session.compress("the anchor")
    for number in range(22, 25):
        turn(session, clock, number)


def pictures(lowwater: Lowwater, clock: ScriptedClock) -> None:
    """Play a session with pictures and without a tool."""
    session = lowwater.session("pictures")
    for number in range(1, 9):
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}
        words = {"type": "text", "text": f"Picture {number}: {text(number, 40)}"}
        session.append({"role": "user", "content": [words, shown]})
        answered(session, clock, {"role": "assistant", "content": text(number + 50, 40)})
    session.compress()
    session.append({"role": "user", "content": "And now?"})
    answered(session, clock, {"role": "assistant", "content": "Now it is calm."})


def known(lowwater: Lowwater, name: str) -> dict[str, Any]:
    """Return what is known of a session as it is, told so that it does not depend on names in the code."""
    session = lowwater.session(name, as_left=True)
    (account,) = lowwater.store.accounts([name])
    return {
        "history": digest(session.history()),
        "messages": len(session.history()),
        "view": digest(session.view()),
        "checkpoints": [point.name for point in session.checkpoints()],
        "turns": [[record.at, record.cost, record.decision] for record in account.records],
        "events": [
            [event.at, event.because.code, *getattr(event, "mechanisms", ())] for event in account.events
        ],
    }


def next_decision(lowwater: Lowwater, clock: ScriptedClock, name: str) -> list[dict[str, Any]]:
    """Go on with a session for a few turns, and return each request and decision."""
    session = lowwater.session(name, as_left=True)
    found = []
    for number in range(40, 46):
        clock.advance(30)
        session.append({"role": "user", "content": f"Next {number}: {text(number, 60)}"})
        request = session.prepare()
        decision = session.decision
        assert decision is not None
        billed = internals(session).expected_usage
        found.append(
            {
                "request": digest(request.messages),
                "reason": decision.because.code,
                "facts": decision.because.facts,
                "expected": [billed.uncached, billed.cache_read, billed.cache_write, billed.cache_write_long],
            }
        )
        session.record({"choices": [{"message": {"role": "assistant", "content": text(number, 30)}}]})
    return found


def digest(value: object) -> str:
    """Return a digest of JSON that does not depend on the order of keys."""
    return blake2b(json.dumps(value, sort_keys=True, default=repr).encode(), digest_size=16).hexdigest()


END = 10_000.0
"""When the sessions are gone on with: the same moment in every version."""


def fill(address: str) -> None:
    """Write both sessions into a store."""
    clock = ScriptedClock(1_000.0)
    lowwater = library(address, clock)
    work(lowwater, clock)
    pictures(lowwater, clock)
    lowwater.close()


def dumped(address: str) -> bytes:
    """Return a PostgreSQL database as plain SQL that any server and driver takes."""
    program = shutil.which("pg_dump")
    assert program, "pg_dump is not on PATH"
    options = ("--inserts", "--no-owner", "--no-privileges", "--dbname", address)
    done = subprocess.run([program, *options], check=True, capture_output=True)
    left_out = (b"--", b"SET ", b"\\", b"SELECT pg_catalog.set_config")
    return (
        b"\n".join(line for line in done.stdout.splitlines() if line and not line.startswith(left_out))
        + b"\n"
    )


def make(name: str, folder: Path) -> None:
    """Write everything for one version."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, postgres_server() as database:
        path = Path(place) / "sessions.db"
        address = f"sqlite:///{path}"
        fill(address)
        (folder / f"{name}.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        for session in SESSIONS:
            out = folder / f"{name}.{session}.jsonl.gz"
            export = ("sessions", "export", session, "--whole", "--no-redact", "--force")
            given = ("--store", address, "--out", str(out))
            subprocess.run([sys.executable, "-m", "lowwater", *export, *given], check=True)
        fill(database)
        (folder / f"{name}.sql.gz").write_bytes(gzip.compress(dumped(database), mtime=0))
        clock = ScriptedClock(END)
        lowwater = library(address, clock)
        told = {session: known(lowwater, session) for session in SESSIONS}
        for session in SESSIONS:
            told[session]["next"] = next_decision(lowwater, clock, session)
        lowwater.close()
    (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
