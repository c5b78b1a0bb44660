"""`lowwater mcp`: recall for clients that speak the Model Context Protocol."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from lowwater.cli.kept_session import find_session, open_kept
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.errors import BadSetting
from lowwater.gateway.options import OWN_TENANT, project_at, source_of
from lowwater.protocols import Store
from lowwater.session.session import Session


def mcp(
    *,
    session: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only this one of them; without it the one used last, or the one a call names.",
            show_default=False,
        ),
    ] = "",
    tenant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only sessions of this tenant of the gateway; default: me, that of lowwater run.",
            show_default=False,
        ),
    ] = "",
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Only sessions of the project in this folder; default: the one it is started in.",
            show_default=False,
        ),
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only sessions of this source instead, such as gateway:7ecbb046 or cli.",
            show_default=False,
        ),
    ] = "",
    store: StoreAddress = "",
) -> None:
    """Serve the recall tools over standard input and output, for an MCP client to start.

    Point it at the store of the gateway or of the library, and the client's
    model can search and read what was compacted: in sessions of one tenant
    and one project, and in no others. Without options that is what `lowwater
    run` keeps of the project that it is started in.

    claude mcp add lowwater -- lowwater mcp
    lowwater mcp --tenant team                sessions of serve --tenant team
    lowwater mcp --source cli                 sessions of the library
    """
    try:
        from lowwater.gateway.mcp_server import server_over  # noqa: PLC0415  # an optional package
    except ImportError as error:
        raise BadSetting(f"this needs the package {error.name}: pip install 'lowwater[mcp]'") from None
    with opened_store(store, is_needed=False) as opened:
        server_over(
            opened,
            open_session=_opened,
            sources=_sources(source, tenant, project),
            session=session,
            version=version("lowwater"),
        ).run("stdio")


def _sources(source: str, tenant: str, project: Path | None) -> tuple[str, ...]:
    """Return what may be looked into: a source that is named, or a tenant's sessions in a project.

    A tenant of `lowwater serve` has no projects unless clients are told apart by them.
    """
    if source:
        return (source,)
    own = source_of(tenant or OWN_TENANT, project_at(project or Path.cwd()))
    return (own, source_of(tenant)) if tenant and project is None else (own,)


def _opened(store: Store, name: str) -> Session:
    return open_kept(store, find_session(store, name))
