"""The option `--store` of all commands that look at kept sessions, and the store it names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from lowwater.ports import Store
from lowwater.wiring import stores

StoreAddress = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="Where sessions are kept: sqlite:///PATH or postgresql://…; default: LOWWATER_STORE, else a file of yours.",
        show_default=False,
    ),
]


@contextmanager
def opened_store(address: str = "", *, redact: bool = True) -> Iterator[Store]:
    """Open the store at an address, or the default one, and close it again; `redact` keeps secrets out of its index."""
    store = stores.opened_store(address.strip() or None, redact=redact)
    try:
        yield store
    finally:
        store.close()
