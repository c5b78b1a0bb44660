"""`lowwater run -- CLIENT …`: an agent behind a gateway of its own, and the bill at the end."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from lowwater.account.figures import Figures
from lowwater.cli.failing import say
from lowwater.cli.kept_session import all_accounts, later_than
from lowwater.cli.kept_words import amount
from lowwater.cli.printing import page_width
from lowwater.cli.serve import ContinueBySummary, Marks, Recall, Summaries
from lowwater.cli.settings_flags import with_settings
from lowwater.cli.status import total_of
from lowwater.cli.status_lines import draw_lines, line_of
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.errors import BadInput, BadSetting
from lowwater.gateway.clients import client_of, started, upstream_in, written
from lowwater.gateway.options import OWN_TENANT, Options, new_capability, project_at
from lowwater.load.registry import load_registry
from lowwater.ports import Store
from lowwater.values.counted import counted
from lowwater.values.settings import Resolved


@with_settings
def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- CLIENT …", help="The client and its arguments, as you would type them."),
    ],
    *,
    store: StoreAddress = "",
    marks: Marks = "client",
    recall: Recall = False,
    summaries_on_client_key: Summaries = False,
    continue_by_summary: ContinueBySummary = False,
    settings: Resolved,
) -> None:
    """Run an agent through a gateway of its own, and print the bill when it ends.

    The gateway takes a free port and lives as long as the client, which alone
    is told its URL: it holds a random word that opens the gateway. It comes by variables (ANTHROPIC_BASE_URL, OPENAI_BASE_URL) or, where it
    needs that, by arguments (codex) and settings (opencode). Where those
    variables were set before, the gateway goes there. The exit code is the
    client's.

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
        _print_bill(opened, since=began, client=client_of(command))
    raise typer.Exit(code)


def _run_behind(command: list[str], options: Options, store: Store) -> int:
    """Run the client behind a gateway, and return its exit code; Ctrl-C is the client's."""
    try:
        from lowwater.gateway.app import Gateway  # noqa: PLC0415  # an optional package
        from lowwater.gateway.serving import served  # noqa: PLC0415
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


def _print_bill(store: Store, *, since: float, client: str) -> None:
    """Print on standard error what the client's sessions cost in this run: standard output is the client's."""
    accounts = [later_than(each, since) for each in all_accounts(store) if each.session.changed_at >= since]
    if not accounts:
        say(f"{client} sent no conversation through the gateway")
        return
    from rich.console import Console  # noqa: PLC0415  # only here

    console, registry = Console(file=sys.stderr, highlight=False), load_registry()
    lines = [line_of(account, total_of(account, registry)) for account in accounts]
    console.print()
    for text in draw_lines(lines, width=page_width(), now=time.time()):
        console.print(text)
    totals: list[Figures] = [total_of(account, registry) for account in accounts]
    known = [line.cost for line in lines]
    cost = None if None in known else sum(each or 0 for each in known)
    nets = [total.net for total in totals]
    net = None if None in nets else sum(each or 0 for each in nets)
    calls = counted(sum(total.turns for total in totals), "call")
    console.print(f"{calls} for {amount(cost)}; compaction saved {amount(net)}")
