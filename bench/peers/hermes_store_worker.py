"""Runs Hermes' own SessionDB; started by `bench.store` with the interpreter of Hermes' environment.

It is given messages, and does what the lines it reads say: each answer has the seconds it took. All of it is Hermes' code,
called as its gateway and its agent call it, with the durability it sets itself unless it is told another.
"""

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="hermes-home-", dir=Path.cwd())

from hermes_state import SessionDB  # type: ignore[import-not-found]  # only there

SESSION = "bench"
PRAGMAS = ("journal_mode", "synchronous", "wal_autocheckpoint")


class Worker:
    """One store at a time, and the messages to put into it."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self._messages = messages

    def open(self, path: str, sync: str) -> dict[str, Any]:
        """Make a new store with one session; return the settings its connection has."""
        self._db = SessionDB(Path(path))
        if sync:
            self._db._conn.execute(f"PRAGMA synchronous = {sync}")
        self._db.create_session(SESSION, source="cli")
        read = {name: self._db._conn.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
        return {"pragmas": read, "trigram": self._db._trigram_available}

    def append(self, start: int, end: int) -> dict[str, Any]:
        """Append messages one by one, each in a transaction: Hermes has no other way to add to a session."""

        def append() -> None:
            for message in self._messages[start:end]:
                self._append_one(message)

        return timed(append)

    def replace(self) -> dict[str, Any]:
        """Write all messages in one transaction, as Hermes does when it rewrites a transcript."""
        return timed(lambda: self._db.replace_messages(SESSION, self._messages))

    def find(self, words: str) -> dict[str, Any]:
        """Tell how many messages have these words, and how many there are."""
        found = self._db.search_messages(words)
        return {"found": len(found), "messages": self._db.message_count(SESSION)}

    def close(self) -> dict[str, Any]:
        """Close the store, which empties its log."""
        return timed(self._db.close)

    def _append_one(self, message: dict[str, Any]) -> None:
        self._db.append_message(
            session_id=SESSION,
            role=message.get("role", "unknown"),
            content=message.get("content"),
            tool_name=message.get("tool_name"),
            tool_calls=message.get("tool_calls"),
            tool_call_id=message.get("tool_call_id"),
        )


def timed(work: Callable[[], object]) -> dict[str, Any]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def main(given: Path) -> None:
    """Answer every line on standard input: the name of a method and its arguments."""
    worker = Worker(json.loads(given.read_bytes()))
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, method)(*arguments)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
