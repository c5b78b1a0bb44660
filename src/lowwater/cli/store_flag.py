"""The option `--store` of all commands that look at kept sessions, and the store it names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session import factories

StoreAddress = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="sqlite:///PATH or postgresql://…; else LOWWATER_STORE, else a file of yours.",
        show_default=False,
    ),
]


@contextmanager
def opened_store(
    address: str = "", *, redact: bool = True, creates: bool = False, is_needed: bool = True
) -> Iterator[Store]:
    """Open the store at an address, or the default one, and close it again; `redact` keeps secrets out of its index.

    A file that is not there is only made by a command that `creates` something in it; for one that it is not needed by, it is
    an empty store.
    """
    place = address.strip() or factories.default_address()
    file = factories.file_at(place)
    if not creates and file is not None and not file.exists():
        if not is_needed:
            yield factories.opened_store(factories.FORGETFUL)
            return
        raise BadInput(
            f"no session is kept yet: there is no file {file}; --store or LOWWATER_STORE name another place"
        )
    store = factories.opened_store(address.strip() or None, redact=redact)
    try:
        yield store
    finally:
        store.close()
