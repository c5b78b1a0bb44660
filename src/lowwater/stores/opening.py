"""Opens the store at an address."""

from collections.abc import Sequence

from lowwater.core.secrets.redaction import conceal as conceal_secrets
from lowwater.errors import BadSetting
from lowwater.protocols import Store
from lowwater.stores.memory import MemoryStore
from lowwater.stores.shared import Conceal
from lowwater.stores.sqlite.connections import sqlite_address
from lowwater.stores.sqlite.store import SqliteStore

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
"""How the address of a PostgreSQL store begins."""

_BUILT_IN = ("memory:", "sqlite:", *POSTGRES_SCHEMES)


def open_store(address: str, *, conceal: Conceal = conceal_secrets, others: Sequence[str] = ()) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or raise BadSetting.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute; any other is relative to the current folder
    or, with `~/`, to the home directory. With `?sync=normal` after it, commits do not wait for the disk (`Sync` in
    `stores/sqlite/connections.py`). Every `memory:` is a new store. `conceal` removes secrets from a text before its words are
    indexed. `others` are the addresses of plugins, for the error message.
    """
    if address == "memory:":
        return MemoryStore(conceal=conceal)
    if address.startswith(POSTGRES_SCHEMES):
        return open_postgres(address, conceal=conceal)
    file = sqlite_address(address)
    if file is None:
        *first, last = ("memory:", "sqlite:///PATH", "postgresql://…", *others)
        raise BadSetting(f"no store is at {_shown(address)!r}: write {', '.join(first)} or {last}")
    return SqliteStore(file.path, conceal=conceal, sync=file.sync)


def is_own(address: str) -> bool:
    """Return whether an address is meant for one of the built-in stores, valid or not."""
    return address.startswith(_BUILT_IN)


def open_postgres(address: str, *, conceal: Conceal) -> Store:
    """Return the store at `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or raise BadSetting."""
    try:
        from lowwater.stores.postgres.store import PostgresStore  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        raise BadSetting("a PostgreSQL store needs its driver: pip install 'lowwater[postgres]'") from None
    return PostgresStore(address, conceal=conceal)


def _shown(address: str) -> str:
    """Return the address as an error may show it: without anything that could be a password."""
    scheme, _, rest = address.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if scheme else address
