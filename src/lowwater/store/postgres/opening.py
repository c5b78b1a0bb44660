"""From an address to a PostgreSQL store, where its driver is installed."""

from lowwater.errors import BadSetting
from lowwater.protocols import Store
from lowwater.store.indexing import Conceal

SCHEMES = ("postgresql://", "postgres://")
"""How an address of such a store begins."""


def open_postgres(address: str, *, conceal: Conceal) -> Store:
    """Return the store at `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or raise BadSetting."""
    try:
        from lowwater.store.postgres.store import PostgresStore  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        raise BadSetting("a PostgreSQL store needs its driver: pip install 'lowwater[postgres]'") from None
    return PostgresStore(address, conceal=conceal)
