"""Picks where sessions are kept: what was given, what the environment says, or the user's data directory."""

import os
from pathlib import Path

from platformdirs import user_data_path

from lowwater.ports import Store
from lowwater.store import opening
from lowwater.store.indexing import Conceal, as_it_is
from lowwater.store.sqlite.address import SQLITE, sqlite_address
from lowwater.values.secrets import conceal as conceal_secrets
from lowwater.wiring.plugins import names_of, store_at

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


def open_store(address: str, *, conceal: Conceal = conceal_secrets) -> Store:
    """Return the store at `memory:`, `sqlite:///PATH` or `postgresql://…`, or at the address of an installed package's.

    A PATH that begins with a slash (`sqlite:////var/lib/lowwater.db`) is absolute, any other starts in the current folder or,
    with `~/`, at home. Every `memory:` is a store of its own. `conceal` takes secrets out of a text before its words are indexed.
    """
    if opening.is_own(address):
        return opening.open_store(address, conceal=conceal)
    store = store_at(address, conceal=conceal)
    others = tuple(f"{name}:…" for name in names_of("store"))
    return store or opening.open_store(address, conceal=conceal, others=others)


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
