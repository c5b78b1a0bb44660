"""A process that appends to a SQLite store: `python writer.py PATH NAME COUNT SESSION...`; tells each commit on its output."""

import sys
from pathlib import Path

from lowwater.errors import StaleLedger
from lowwater.store.sqlite.store import SqliteStore
from lowwater.testing.store_contract import said
from lowwater.values.entries import Checkpointed
from lowwater.values.turn_record import TurnRecord


def main(path: str, name: str, count: str, *sessions: str) -> None:
    store = SqliteStore(Path(path))
    versions = {session: store.read(session).version for session in sessions}
    for number in range(int(count)):
        for session in sessions:
            label = f"{name}:{number}"
            is_kept = False
            while not is_kept:
                try:
                    versions[session] = store.append(
                        session,
                        versions[session],
                        [said(f"{label} " + "padding " * 200), Checkpointed(at=1.0, name=label)],
                        TurnRecord(at=1.0, model="m", decision=label, belief=label.encode()),
                    )
                    is_kept = True
                except StaleLedger as stale:
                    versions[session] = stale.found
            sys.stdout.write(f"{session} {label}\n")
            sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
