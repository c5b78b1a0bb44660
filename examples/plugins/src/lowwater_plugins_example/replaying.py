"""From the lines of a journal to the store they describe, and lines that describe it without some of its sessions."""

import secrets
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from lowwater import Store, open_store
from lowwater.plugins import Append
from lowwater_plugins_example.journal import Added, Copied, Drawn, Gone, Left, Line


def replay(memory: Store, lines: Iterable[Line]) -> None:
    """Do to an empty store, or to one that has seen the lines before these, what the lines say: its versions come out the same."""
    for line in lines:
        match line:
            case Added():
                memory.append(line.session, memory.outline(line.session).version, line.new)
            case Copied():
                memory.copy(line.session, line.to, line.about)
            case Left():
                memory.record_fingerprint(line.fingerprint)
            case Gone():
                _use_up(memory, line.versions)
            case Drawn():
                pass


def without(lines: Iterable[Line], sessions: Collection[str]) -> list[Line]:
    """Return the lines of a store that never held these sessions, but whose other sessions have the versions they had.

    A session that began as a copy of one of them begins with what it copied.
    """
    kept: list[Line] = []
    memory = open_store("memory:")
    for line in lines:
        replay(memory, [line])
        match line:
            case Drawn():
                kept.append(replace(line, rewritten=line.rewritten + 1))
            case Left():
                kept += [] if line.fingerprint.session in sessions else [line]
            case Added(session=name) | Copied(to=name) if name in sessions:
                kept.append(Gone(versions=1))
            case Copied(session=name) if name in sessions:
                began = memory.read(line.to)
                new = Append(entries=began.entries, carried=began.carried, about=began.about)
                kept.append(Added(session=line.to, new=new))
            case _:
                kept.append(line)
    return kept


def _use_up(memory: Store, versions: int) -> None:
    """Use up versions: they never come back, not even those of a session that is deleted at once."""
    for _ in range(versions):
        name = secrets.token_hex()
        memory.append(name, 0, Append(carried=b"-"))
        memory.delete(name)
