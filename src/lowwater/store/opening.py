"""From the address of a store to the store."""

from pathlib import Path

from lowwater.errors import BadSetting
from lowwater.ports import Store
from lowwater.store.memory import MemoryStore
from lowwater.store.sqlite.store import SqliteStore

SQLITE = "sqlite:///"


def open_store(address: str) -> Store:
    """Return the store at `memory:` or `sqlite:///PATH`, or raise BadSetting.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute, any other starts in the current folder or,
    with `~/`, at home. Every `memory:` is a store of its own.
    """
    if address == "memory:":
        return MemoryStore()
    path = address.removeprefix(SQLITE)
    if path == address or not path:
        raise BadSetting(f"no store is at {address!r}: write memory: or sqlite:///PATH")
    return SqliteStore(Path(path).expanduser())
