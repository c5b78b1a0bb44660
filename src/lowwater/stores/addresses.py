"""The addresses of stores, and opening the store at one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from lowwater.errors import BadSetting
from lowwater.protocols import Store
from lowwater.stores.shared import Conceal, conceal_secrets

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
"""How the address of a PostgreSQL store begins."""

SQLITE = "sqlite:///"
Sync = Literal["full", "normal"]
"""What a commit survives: with `full` a loss of power, with `normal` any end of the process.

With `normal` a loss of power may undo the last commits, newest first; the file stays consistent in either case.
"""
_SYNC = "?sync="
_BUILT_IN = ("memory:", "sqlite:", *POSTGRES_SCHEMES)


def open_store(address: str, *, conceal: Conceal = conceal_secrets, others: Sequence[str] = ()) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or raise BadSetting.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute; any other is relative to the current folder
    or, with `~/`, to the home directory. With `?sync=normal` after it, commits do not wait for the disk (`Sync`). Every `memory:` is a new store. `conceal` removes secrets from a text before its words are
    indexed. `others` are the addresses of plugins, for the error message.
    """
    if address == "memory:":
        from lowwater.stores.memory import MemoryStore  # noqa: PLC0415 - for those who use it

        return MemoryStore(conceal=conceal)
    if address.startswith(POSTGRES_SCHEMES):
        return open_postgres(address, conceal=conceal)
    file = sqlite_address(address)
    if file is None:
        *first, last = ("memory:", "sqlite:///PATH", "postgresql://…", *others)
        raise BadSetting(f"no store is at {_shown(address)!r}: write {', '.join(first)} or {last}")
    from lowwater.stores.sqlite.store import SqliteStore  # noqa: PLC0415 - for those who use it

    return SqliteStore(file.path, conceal=conceal, sync=file.sync)


class SqliteAddress(Struct, frozen=True, kw_only=True):
    """A file, and how durable its commits are."""

    path: Path
    sync: Sync = "full"


def sqlite_address(address: str) -> SqliteAddress | None:
    """Return what `sqlite:///PATH` or `sqlite:///PATH?sync=normal` names, None if it is no such address, or raise BadSetting."""
    if not address.startswith(SQLITE) or address == SQLITE:
        return None
    path, asked, sync = address.removeprefix(SQLITE).rpartition(_SYNC)
    if not asked:
        return SqliteAddress(path=Path(sync).expanduser())
    for known in get_args(Sync):
        if sync == known and path:
            return SqliteAddress(path=Path(path).expanduser(), sync=known)
    raise BadSetting(
        f"a store cannot be at {address!r}: write sqlite:///PATH, optionally followed by ?sync=full or ?sync=normal"
    )


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
