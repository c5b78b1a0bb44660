"""From the address of a store to the store."""

from collections.abc import Sequence

from lowwater.core.secrets.redaction import conceal as conceal_secrets
from lowwater.errors import BadSetting
from lowwater.protocols import Store
from lowwater.stores.memory import MemoryStore
from lowwater.stores.shared import Conceal
from lowwater.stores.sqlite.connections import sqlite_address
from lowwater.stores.sqlite.store import SqliteStore

SCHEMES = ("postgresql://", "postgres://")
"""How an address of such a store begins."""


def open_postgres(address: str, *, conceal: Conceal) -> Store:
    """Return the store at `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or raise BadSetting."""
    try:
        from lowwater.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        raise BadSetting("a PostgreSQL store needs its driver: pip install 'lowwater[postgres]'") from None
    return PostgresStore(address, conceal=conceal)


_OWN = ("memory:", "sqlite:", *SCHEMES)


def is_own(address: str) -> bool:
    """Return whether an address, right or wrong, is meant for one of our own stores."""
    return address.startswith(_OWN)


def open_store(address: str, *, conceal: Conceal = conceal_secrets, others: Sequence[str] = ()) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or raise BadSetting.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute, any other starts in the current folder or,
    with `~/`, at home; with `?sync=normal` behind it, commits do not wait for the disk (`stores/sqlite/connections.py`). Every `memory:` is a store of its own. `conceal` takes secrets out of a text
    before its words are indexed. `others` are addresses that are opened elsewhere, as an error names them.
    """
    if address == "memory:":
        return MemoryStore(conceal=conceal)
    if address.startswith(SCHEMES):
        return open_postgres(address, conceal=conceal)
    file = sqlite_address(address)
    if file is None:
        *first, last = ("memory:", "sqlite:///PATH", "postgresql://…", *others)
        raise BadSetting(f"no store is at {_shown(address)!r}: write {', '.join(first)} or {last}")
    return SqliteStore(file.path, conceal=conceal, sync=file.sync)


def _shown(address: str) -> str:
    """Return the address as an error may show it: without what could be a password."""
    scheme, _, rest = address.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if scheme else address
