"""A process that appends to a store: `python writer.py ADDRESS NAME COUNT SESSION...`; tells each commit on its output."""

import sys

from lowwater.core.decisions import Reason
from lowwater.core.entries import Compacted, Numbers, SummarizedSpan
from lowwater.core.events import Compaction, TurnRecord
from lowwater.core.stored import Append
from lowwater.errors import StaleLedger
from lowwater.session.factories import open_store
from lowwater.testing.store_contract import said


def labelled(label: str) -> Append:
    """An append that says in each of its parts which one it is."""
    summary = SummarizedSpan(text=label, role="user", sources=(Numbers(first=1, last=1),), tokens=1)
    event = Compaction(
        at=1.0,
        model="m",
        mode="summary",
        mechanisms=("summarize",),
        because=Reason(code=label),
        before=2,
        after=1,
        items_before=2,
        items_after=1,
        first_changed=0,
        disturbed=0,
    )
    return Append(
        entries=(
            said(f"{label} " + "padding " * 200),
            Compacted(at=1.0, mechanisms=("summarize",), items=(summary,)),
        ),
        record=TurnRecord(at=1.0, model="m", decision=label),
        events=(event,),
        carried=label.encode(),
    )


def main(address: str, name: str, count: str, *sessions: str) -> None:
    store = open_store(address)
    versions = {session: store.outline(session).version for session in sessions}
    for number in range(int(count)):
        for session in sessions:
            label = f"{name}:{number}"
            is_kept = False
            while not is_kept:
                try:
                    versions[session] = store.append(session, versions[session], labelled(label))
                    is_kept = True
                except StaleLedger as stale:
                    versions[session] = stale.found
            sys.stdout.write(f"{session} {label}\n")
            sys.stdout.flush()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
