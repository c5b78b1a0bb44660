"""What PostgreSQL says, in the words of the port."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from lowwater.errors import BadInput, DamagedStore, StoreFailed, UnusableStore
from lowwater.store.postgres.address import Address

_SERVER = "check that the server runs and can be reached, then try again"
_ADDRESS = "check user, password and database in its address, and whether the server takes connections"
_REFUSED = "FATAL:  "
"""What a server says before why it takes no connection; the driver has no code for that."""

_ADVICE = {
    "08": _SERVER,
    "25006": "this server takes no writes; use the address of the one that does",
    "25P03": "this process stood still in the middle of it; try again",
    "3F000": "its tables are gone; open it again",
    "42501": "give the user the right to create and use tables there",
    "42P01": "its tables are gone; open it again",
    "53100": "make room on the server's disk",
    "53": "the server has no room for more; raise its limits, or use fewer processes",
    "55P03": "another process holds the session for too long; end that process",
    "57": _SERVER,
    "58": "check the server's disk",
}
"""By the code of an error, or by its class, which the code begins with."""

_DAMAGED = ("XX001", "XX002")


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn what happens to the server into UnusableStore and DamagedStore; a mistake of ours stays what it is."""
    try:
        yield
    except psycopg.Error as error:
        raise _told(address, error) or error from None
    except UnicodeEncodeError as error:
        raise BadInput(f"a name with half a character cannot be stored: {error.reason}") from None


def _told(address: Address, error: psycopg.Error) -> StoreFailed | None:
    said = address.without_password(error.diag.message_primary or str(error).partition("\n")[0])
    if error.sqlstate in _DAMAGED:
        return DamagedStore(
            f"the store {address} is damaged ({said}): restore a copy, or choose another place"
        )
    advice = _advice(error, said)
    _, _, reason = said.rpartition(_REFUSED)
    return UnusableStore(f"the store {address} cannot be used ({reason}): {advice}") if advice else None


def _advice(error: psycopg.Error, said: str) -> str | None:
    if error.sqlstate is not None:
        return _ADVICE.get(error.sqlstate) or _ADVICE.get(error.sqlstate[:2])
    if not isinstance(error, psycopg.OperationalError):
        return None
    return _ADDRESS if _REFUSED in said else _SERVER
