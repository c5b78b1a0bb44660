"""`lowwater dashboard`: stored sessions in a browser, as they go on."""

import logging
import os
import webbrowser
from typing import Annotated

import typer

from lowwater.cli.command import say, with_settings
from lowwater.cli.gateway import DASHBOARD_TOKEN
from lowwater.cli.stored_sessions import StoreAddress, complete_session, find_session, opened_store
from lowwater.settings.resolve import Resolved

_HOST = "127.0.0.1"


@with_settings
def dashboard(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The session to open; by default the list.", autocompletion=complete_session
        ),
    ] = None,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="N", help="The port; 0 is any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser", help="Open it in the browser.")] = False,
    store: StoreAddress = "",
    settings: Resolved,
) -> None:
    """Show stored sessions in a browser while agents work on them.

    What fills the window, call by call; the bill beside what it would have
    been; every compaction with its reason, price, and the prompt before and
    after; search over everything; pins. One can undo a compaction, pin,
    compact, export and delete. Only this machine is served, and only who has
    the URL that is printed: it holds a token.

    lowwater dashboard
    lowwater dashboard refactor-auth --browser
    """
    from lowwater.gateway.dashboard.access import DashboardAccess  # noqa: PLC0415 - servers take a while to load
    from lowwater.gateway.dashboard.app import Dashboard, DashboardServer  # noqa: PLC0415
    from lowwater.gateway.options import GatewayOptions  # noqa: PLC0415
    from lowwater.gateway.server import serve  # noqa: PLC0415

    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
    with opened_store(store, redact=settings.settings.privacy.redact) as opened:
        session = "" if name is None else find_session(opened, name).name
        # Whoever can open the store's file can read all of it.
        access = DashboardAccess(is_owner=True, token=os.environ.get(DASHBOARD_TOKEN, "").strip())
        app = Dashboard(opened, GatewayOptions(settings=settings.settings), access)

        def ready(url: str) -> None:
            whole = app.url(url, session)
            say(f"the dashboard is at {whole} (Ctrl-C stops it)")
            if browser:
                webbrowser.open(whole)

        serve(DashboardServer(app), host=_HOST, port=port, ready=ready)
