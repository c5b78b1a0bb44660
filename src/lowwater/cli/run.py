"""`lowwater run -- CLIENT …`: an agent behind a gateway of its own, and the bill at the end."""

import logging
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer

from lowwater.cli.bill import print_bill
from lowwater.cli.serve import ContinueBySummary, Marks, Recall, Summaries
from lowwater.cli.settings_flags import with_settings
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.errors import BadInput, BadSetting
from lowwater.gateway.clients import client_of, started, upstream_in, written
from lowwater.gateway.options import OWN_TENANT, Options, new_capability, project_at
from lowwater.protocols import Store
from lowwater.settings.resolve import Resolved


@with_settings
def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- CLIENT …", help="The client and its arguments.", show_default=False),
    ],
    *,
    store: StoreAddress = "",
    marks: Marks = "client",
    recall: Recall = False,
    summaries_on_client_key: Summaries = False,
    continue_by_summary: ContinueBySummary = False,
    json: Annotated[bool, typer.Option("--json", help="The bill as JSON, on standard error.")] = False,
    settings: Resolved,
) -> None:
    """Run an agent through a gateway of its own, and print the bill when it ends.

    The client alone is told the gateway's URL, which holds a random word that
    opens it: by variables (ANTHROPIC_BASE_URL, OPENAI_BASE_URL), arguments
    (codex) or settings (opencode). Where those variables were set before, the
    gateway goes there. The exit code is the client's.

    lowwater run -- claude
    lowwater run -- codex exec "mend the failing test"
    lowwater run --recall -- opencode run "what changed?"
    """
    if shutil.which(command[0]) is None:
        raise BadInput(f"there is no program {command[0]!r} on the PATH: install it, or give its whole path")
    upstream = upstream_in(os.environ, client_of(command))
    options = Options(
        anthropic_upstream=upstream.anthropic,
        openai_upstream=upstream.openai,
        settings=settings.settings,
        tenant=OWN_TENANT,
        project=project_at(Path.cwd()),
        capability=new_capability(),
        joins_by_summary=continue_by_summary,
        marks=marks,
        recall=recall,
        summaries=summaries_on_client_key,
        summary_model=settings.settings.compression.summary_model or "",
    )
    began = time.time()
    with opened_store(store, redact=settings.settings.privacy.redact, creates=True) as opened:
        code = _run_behind(command, options, opened)
        nothing = f"{client_of(command)} sent no conversation through the gateway"
        print_bill(opened, since=began, nothing=nothing, json=json)
    raise typer.Exit(code)


def _run_behind(command: list[str], options: Options, store: Store) -> int:
    """Run the client behind a gateway, and return its exit code; Ctrl-C is the client's."""
    try:
        from lowwater.gateway.app import Gateway  # noqa: PLC0415  # an optional package
        from lowwater.gateway.server import served  # noqa: PLC0415
    except ImportError as error:
        raise BadSetting(
            f"the gateway needs the package {error.name}: pip install 'lowwater[gateway]'"
        ) from None
    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
    with served(Gateway(options, store)) as url:
        client = started(command, f"{url}/{options.capability}", os.environ)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return subprocess.run(  # noqa: S603 - what the user asked for
                client.command, env={**os.environ, **client.env}, check=False
            ).returncode
        except OSError as error:
            raise BadInput(f"{written(command)} could not be started: {error.strerror}") from None
        finally:
            signal.signal(signal.SIGINT, before)
