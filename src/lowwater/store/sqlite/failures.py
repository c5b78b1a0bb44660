"""What SQLite says, in the words of the port."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from lowwater.errors import BadInput, DamagedStore, UnusableStore

_ADVICE = {
    sqlite3.SQLITE_FULL: "make room on the disk or choose another place",
    sqlite3.SQLITE_IOERR: "check the disk, or choose another place",
    sqlite3.SQLITE_READONLY: "give the right to write the file and its folder, or choose another place",
    sqlite3.SQLITE_CANTOPEN: "give the right to write the file and its folder, or choose another place",
    sqlite3.SQLITE_BUSY: "another process holds it for too long; end that process",
}
_MISSING = ("no such table", "no such column")
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def translated(path: object) -> Iterator[None]:
    """Turn what the disk does to SQLite into UnusableStore and DamagedStore; a mistake of ours stays what it is."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            said = (
                f"the store {path} is damaged ({error}): restore a backup, or get out what is whole with "
                f"`lowwater sessions salvage NEW.db --store sqlite:///{path}`"
            )
            raise DamagedStore(said) from error
        if code == sqlite3.SQLITE_ERROR and str(error).startswith(_MISSING):
            said = f"the store {path} cannot be used ({error}): restore a copy with all of its tables, or choose another place"
            raise UnusableStore(said) from error
        if code not in _ADVICE:
            raise
        raise UnusableStore(f"the store {path} cannot be used ({error}): {_ADVICE[code]}") from error
    except UnicodeEncodeError as error:
        raise BadInput(f"a name with half a character cannot be stored: {error.reason}") from None
    except OSError as error:
        said = f"the store {path} cannot be opened ({error.strerror}): {_ADVICE[sqlite3.SQLITE_CANTOPEN]}"
        raise UnusableStore(said) from error
