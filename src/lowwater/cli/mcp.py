"""`lowwater mcp`: recall for clients that speak the Model Context Protocol."""

from importlib.metadata import version
from typing import Annotated

import typer

from lowwater.cli.kept_session import find_session, open_kept
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.errors import BadSetting
from lowwater.ports import Store
from lowwater.wiring.session import Session


def mcp(
    *,
    session: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only this session; without it the one used last, or the one a call names.",
            show_default=False,
        ),
    ] = "",
    source: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only sessions of this source, such as gateway:7ecbb046 for one tenant.",
            show_default=False,
        ),
    ] = "",
    store: StoreAddress = "",
) -> None:
    """Serve the recall tools over standard input and output, for an MCP client to start.

    Point it at the store of the gateway or of the library, and the client's
    model can search and read what was compacted.

    claude mcp add lowwater -- lowwater mcp
    codex mcp add lowwater -- lowwater mcp --store postgresql://…
    """
    try:
        from lowwater.gateway.mcp_server import server_over  # noqa: PLC0415  # an optional package
    except ImportError as error:
        raise BadSetting(f"this needs the package {error.name}: pip install 'lowwater[mcp]'") from None
    with opened_store(store, is_needed=False) as opened:
        server_over(
            opened, open_session=_opened, session=session, source=source, version=version("lowwater")
        ).run("stdio")


def _opened(store: Store, name: str) -> Session:
    return open_kept(store, find_session(store, name))
