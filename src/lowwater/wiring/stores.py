"""Picks where sessions are kept: what was given, what the environment says, or the user's data directory."""

import os
from pathlib import Path

from platformdirs import user_data_path

from lowwater.ports import Store
from lowwater.store.indexing import as_it_is
from lowwater.store.opening import open_store
from lowwater.store.sqlite.address import SQLITE, sqlite_address

VARIABLE = "LOWWATER_STORE"
FORGETFUL = "memory:"
"""The store of what is not worth keeping."""


def opened_store(given: Store | str | None = None, *, redact: bool = True) -> Store:
    """Return the store that was given, or open the one at an address, else at the default one.

    With `redact`, secrets are kept out of its search index.
    """
    if given is not None and not isinstance(given, str):
        return given
    address = given or default_address()
    return open_store(address) if redact else open_store(address, conceal=as_it_is)


def default_address() -> str:
    """Return the address in LOWWATER_STORE, or else that of a file in the user's data directory."""
    return os.environ.get(VARIABLE, "").strip() or f"{SQLITE}{default_path()}"


def file_at(address: str) -> Path | None:
    """Return the file that a store at this address is, or would be; None if it is none."""
    file = sqlite_address(address)
    return None if file is None else file.path


def default_path() -> Path:
    """Return where the file is that sessions are kept in unless something else is said."""
    return user_data_path("lowwater", appauthor=False) / "sessions.db"
