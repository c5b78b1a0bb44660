"""`lowwater run` and `lowwater serve`: Lowwater between an agent and its provider, and recall for MCP clients."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.command import IdleLimitOption, IdleOption, say, with_settings
from lowwater.cli.status import SessionLine, session_line, sessions_table
from lowwater.cli.stored_sessions import (
    StoreAddress,
    accounts_of,
    command_line,
    find_session,
    later_than,
    opened_store,
)
from lowwater.cli.tables import page_width
from lowwater.cli.wording import amount, figure, printable, recall_json, recall_sentence, short
from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.efficiency import total_of
from lowwater.core.accounts.figures import Figures
from lowwater.core.accounts.pauses import pauses_kept, total_kept
from lowwater.core.stored import Account
from lowwater.core.turns.state import SUMMARY_SHARE
from lowwater.core.wording import counted
from lowwater.errors import BadInput, BadSetting
from lowwater.gateway.clients import client_of, shell_command, started, upstream_in
from lowwater.gateway.options import (
    ANTHROPIC,
    IDLE_HOURS,
    OPENAI,
    OWN_TENANT,
    SHADOW_SOURCE,
    GatewayOptions,
    is_loopback,
    new_capability,
    project_at,
    source_of,
)
from lowwater.protocols import Store
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session
from lowwater.settings.resolve import Resolved

ACCESS_KEYS = "LOWWATER_GATEWAY_KEYS"
DASHBOARD_TOKEN = "LOWWATER_DASHBOARD_TOKEN"  # noqa: S105 - the variable's name
_MCP = "Recall for MCP clients"
_FOR_MCP, _FOR_BOTH = {"mcp", "session", "project", "source", "compact"}, {"store", "tenant", "config"}
"""The parameters of `serve` that --mcp adds, and those that it shares with the gateway."""
AnthropicOption = Annotated[
    str, typer.Option(metavar="URL", help="The upstream for requests in Anthropic's format.")
]
OpenAiOption = Annotated[
    str, typer.Option(metavar="URL", help="The upstream for requests in OpenAI's formats.")
]
MarksOption = Annotated[
    Literal["client", "auto"],
    typer.Option(
        metavar="client|auto",
        help="Whose cache marks; auto: Lowwater's, for API keys.",
    ),
]
ContinueOption = Annotated[
    bool, typer.Option("--continue-by-summary", help="Join sessions by quoted summaries.")
]

ShadowOption = Annotated[
    bool,
    typer.Option("--shadow", help="Only compute what it saves."),
]
_SHADOW_STORE = "memory:"
"""Where shadow mode keeps its sessions unless a store is named."""


@with_settings
def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- CLIENT …", help="The client and its arguments.", hidden=True),
    ],
    *,
    store: Annotated[str, typer.Option(metavar="ADDRESS", help="Where sessions are kept.")] = "",
    marks: Annotated[
        Literal["client", "auto"] | None,
        typer.Option(metavar="client|auto", help="Whose cache marks; default auto."),
    ] = None,
    no_recall: Annotated[bool, typer.Option("--no-recall", help="Give the model no recall tools.")] = False,
    no_summaries: Annotated[
        bool, typer.Option("--no-summaries", help="Make no calls for summaries.")
    ] = False,
    continue_by_summary: ContinueOption = False,
    idle: IdleOption = "off",
    idle_limit: IdleLimitOption = 1.0,
    shadow: ShadowOption = False,
    json: Annotated[bool, typer.Option("--json", help="The bill as JSON, on stderr.")] = False,
    settings: Resolved,
) -> None:
    """Run an agent through a gateway of its own, and print the bill.

    Summaries are bought on API keys only, for at most a tenth of the cost.

    lowwater run --idle auto -- claude
    """
    program = shutil.which(command[0])
    if program is None:
        raise BadInput(f"there is no program {command[0]!r} on the PATH: install it, or give its whole path")
    if os.name == "nt":
        # Windows starts a `.cmd`, as npm installs clients, only by its whole path.
        command = [program, *command[1:]]
    upstream = upstream_in(os.environ, client_of(command))
    options = GatewayOptions(
        anthropic_upstream=upstream.anthropic,
        openai_upstream=upstream.openai,
        settings=settings.settings,
        tenant=OWN_TENANT,
        project=project_at(Path.cwd()),
        capability=new_capability(),
        joins_by_summary=continue_by_summary,
        idle=idle,
        idle_dollars=idle_limit,
        marks=marks or ("client" if shadow else "auto"),
        recall=not no_recall,
        summaries="never" if no_summaries else "api-keys",
        idle_consent="api-keys",
        shadow=shadow,
        summary_model=settings.settings.compression.summary_model or "",
    )
    if not settings.settings.output.quiet:
        say(announcement(options))
    began = time.time()
    place = store or (_SHADOW_STORE if shadow else "")
    with opened_store(place, redact=settings.settings.privacy.redact, creates=True) as opened:
        code = _run_client(command, options, opened)
        nothing = f"{client_of(command)} sent no conversation through the gateway"
        print_bill(opened, since=began, nothing=nothing, json=json, shadow=shadow, address=store)
    raise typer.Exit(code)


def announcement(options: GatewayOptions) -> str:
    """Return what `run` will do on the user's account, in one sentence."""
    if options.shadow:
        return "shadow: every byte goes through as it comes and no further calls are made; the bill says what it would have cost"
    if options.summary_model:
        summaries = f"summaries by {options.summary_model}"
    elif options.summaries == "api-keys":
        summaries = (
            f"summaries on your API key where they pay, at most {SUMMARY_SHARE:.0%} of the cost, none on a subscription "
            "(--no-summaries)"
        )
    else:
        summaries = "no calls for summaries"
    recall = "recall tools for the model (--no-recall)" if options.recall else "no recall tools"
    said = f"compacting when it pays: {summaries}; {recall}"
    if options.idle == "off":
        return said
    return (
        f"{said}; in pauses calls on your API key (--idle {options.idle}) where they pay, for at most ${options.idle_dollars:g} a "
        f"session, until {IDLE_HOURS} hours after its last request or until the client ends"
    )


def _run_client(command: list[str], options: GatewayOptions, store: Store) -> int:
    """Run the client with a gateway in front of it and return its exit code; Ctrl-C goes to the client alone."""
    from lowwater.gateway.app import Gateway  # noqa: PLC0415 - servers take a while to load
    from lowwater.gateway.server import served  # noqa: PLC0415

    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
    gateway = Gateway(options, store)
    with served(gateway) as url:
        # The URL holds the dashboard's token, which belongs on a terminal and into no log.
        if sys.stderr.isatty() and not options.settings.output.quiet:
            say(f"watch it: {gateway.dashboard.url(url)}")
        client = started(command, f"{url}/{options.capability}", os.environ)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return subprocess.run(  # noqa: S603 - what the user asked for
                client.command, env={**os.environ, **client.env}, check=False
            ).returncode
        except OSError as error:
            raise BadInput(f"{shell_command(command)} could not be started: {error.strerror}") from None
        finally:
            signal.signal(signal.SIGINT, before)


@with_settings
def serve(
    context: typer.Context,
    *,
    host: Annotated[str, typer.Option(metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, metavar="N", help="The port; 0 is any free one.")
    ] = 4141,
    anthropic_upstream: AnthropicOption = "",
    openai_upstream: OpenAiOption = "",
    store: StoreAddress = "",
    tenant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="One tenant for all clients; by default each API key is its own.",
        ),
    ] = "",
    marks: MarksOption = "client",
    recall: Annotated[
        bool, typer.Option("--recall", help="Give models tools that read what was compacted.")
    ] = False,
    summaries: Annotated[
        bool,
        typer.Option("--summaries", help="Have summaries written on every client's API key where they pay."),
    ] = False,
    require_key: Annotated[
        bool, typer.Option("--require-key", help="Refuse requests that carry no credential.")
    ] = False,
    open_to_all: Annotated[
        bool,
        typer.Option(
            "--open-to-all", help=f"Allow other machines to connect even if {ACCESS_KEYS} is empty."
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Also accept this Host header; may be repeated.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Accept requests from pages of this Origin; may be repeated."),
    ] = None,
    trust_tokens: Annotated[
        bool,
        typer.Option(
            "--trust-tokens",
            help="Derive tenants from the accounts in tokens; a proxy in front must verify signatures.",
        ),
    ] = False,
    continue_by_summary: ContinueOption = False,
    idle: IdleOption = "off",
    idle_limit: IdleLimitOption = 1.0,
    shadow: ShadowOption = False,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="The largest request body.")] = 64,
    max_requests: Annotated[int, typer.Option(min=1, metavar="N", help="The most requests at once.")] = 512,
    max_messages: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="The longest message list to process; longer ones pass unchanged."
        ),
    ] = 20_000,
    quiet_log: Annotated[
        bool,
        typer.Option("--no-log", help="Do not log requests (readable lines on a terminal, JSON in a pipe)."),
    ] = False,
    mcp: Annotated[
        bool,
        typer.Option("--mcp", help="Serve recall tools over stdin and stdout instead.", rich_help_panel=_MCP),
    ] = False,
    session: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only this session; else the newest, or the one that a call names.",
            rich_help_panel=_MCP,
        ),
    ] = "",
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Only sessions of the project there; else here.", rich_help_panel=_MCP
        ),
    ] = None,
    source: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Only of this source, such as cli or gateway:7ecbb046.", rich_help_panel=_MCP
        ),
    ] = "",
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="A tool, too, by which the model has its session compacted.",
            rich_help_panel=_MCP,
        ),
    ] = False,
    settings: Resolved,
) -> None:
    """Run the gateway for any client, or serve recall with --mcp.

    Point a client's base URL at it: its conversations are compacted when that
    pays, and requests with nothing to compact pass through byte for byte.
    Messages are stored once the provider has accepted them; API keys are
    neither stored nor logged. If LOWWATER_GATEWAY_KEYS lists keys, every
    request must send one as x-lowwater-key; to listen on an address that
    other machines can reach, keys are required.

    With --shadow nothing is changed; the bill says what `lowwater run` would have
    cost. With --mcp, an MCP client starts it, and its model can search and read
    what was compacted: only in sessions of one tenant and project, by default
    those that `lowwater run` stored for the current project.

    lowwater serve
    ANTHROPIC_BASE_URL=http://127.0.0.1:4141 claude
    LOWWATER_GATEWAY_KEYS=one,two lowwater serve --host 0.0.0.0
    lowwater serve --store postgresql://…      any number of replicas
    claude mcp add lowwater -- lowwater serve --mcp
    lowwater serve --mcp --source cli          sessions of the library
    """
    _check_options(context, mcp=mcp)
    if mcp:
        _serve_recall(store, session=session, tenant=tenant, project=project, source=source, compact=compact)
        return
    access_keys = _access_keys()
    if not access_keys and not open_to_all and not is_loopback(host):
        raise BadSetting(
            f"{host} can be reached by other machines, and {ACCESS_KEYS} names no keys: set it to one or several, separated by "
            "commas, which clients send as x-lowwater-key; or say --open-to-all"
        )
    options = GatewayOptions(
        anthropic_upstream=anthropic_upstream or ANTHROPIC,
        openai_upstream=openai_upstream or OPENAI,
        settings=settings.settings,
        tenant=tenant,
        marks=marks,
        recall=recall or shadow,
        summaries="api-keys" if summaries or shadow else "asked",
        shadow=shadow,
        summary_model=settings.settings.compression.summary_model or "",
        require_key=require_key,
        access_keys=access_keys,
        hosts=tuple(each.strip().lower() for each in allow_host or ()),
        origins=tuple(each.strip().lower().rstrip("/") for each in allow_origin or ()),
        trusts_tokens=trust_tokens,
        dashboard_token=os.environ.get(DASHBOARD_TOKEN, "").strip(),
        joins_by_summary=continue_by_summary,
        idle=idle,
        idle_dollars=idle_limit,
        most_bytes=max_body * 1024 * 1024,
        most_requests=max_requests,
        most_messages=max_messages,
    )
    if not quiet_log:
        log_to_stderr()
    run_gateway(options, store, host=host, port=port)


def _check_options(context: typer.Context, *, mcp: bool) -> None:
    """Refuse an option of the gateway beside --mcp, and one of --mcp without it."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name)
        is_out_of_place = name not in _FOR_BOTH and mcp != (name in _FOR_MCP)
        if is_out_of_place and given is not None and given.name == "COMMANDLINE":
            raise BadInput(
                f"{parameter.opts[0]} {'does not go with --mcp' if mcp else 'goes with --mcp only'}"
            )


def _access_keys() -> tuple[str, ...]:
    return tuple(key.strip() for key in os.environ.get(ACCESS_KEYS, "").split(",") if key.strip())


def run_gateway(options: GatewayOptions, store: str, *, host: str, port: int) -> None:
    """Serve until a signal stops it; on a terminal, print the bill then."""
    from lowwater.gateway.app import Gateway  # noqa: PLC0415 - servers take a while to load
    from lowwater.gateway.server import serve as serve_until_signal  # noqa: PLC0415

    began = time.time()
    place = store or (_SHADOW_STORE if options.shadow else "")
    with opened_store(place, redact=options.settings.privacy.redact, creates=True) as opened:
        gateway = Gateway(options, opened)

        def ready(url: str) -> None:
            say(
                f"serving on {url}: set ANTHROPIC_BASE_URL={url} or OPENAI_BASE_URL={url}/v1; Ctrl-C stops it"
            )
            if sys.stderr.isatty():
                say(f"watch it: {gateway.dashboard.url(url)}")

        try:
            serve_until_signal(gateway, host=host, port=port, ready=ready)
        finally:
            if options.shadow or sys.stderr.isatty():
                nothing = "no conversation came through the gateway"
                print_bill(opened, since=began, nothing=nothing, shadow=options.shadow, address=store)


class RequestLines(logging.Formatter):
    """Formats the gateway's JSON log lines for a terminal; other lines stay as they are."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, status, model, size, decision, timings, session and outcome on one line."""
        said = record.getMessage()
        try:
            line = msgspec.json.decode(said, type=dict[str, Any])
        except msgspec.DecodeError:
            return said
        if "idle" in line:
            return f"{time.strftime('%H:%M:%S', time.localtime(record.created))}  pause over: {line['idle']}  {line.get('session', '')}"
        sent = f"{line.get('request_bytes', 0) / 1024:,.0f} KB"
        done = "compacted" if line.get("changed") else str(line.get("decision") or "passed on")
        words = [
            time.strftime("%H:%M:%S", time.localtime(record.created)),
            str(line.get("status") or "–"),
            str(line.get("model") or line.get("path") or ""),
            sent,
            done,
            f"first byte {line.get('first_byte_ms', 0) / 1000:.2f} s",
            f"in all {line.get('ms', 0) / 1000:.2f} s",
            str(line.get("session") or ""),
            str(line.get("outcome") or ""),
        ]
        return "  ".join(printable(word) for word in words if word)


def log_to_stderr() -> None:
    """Log each request to standard error: readable on a terminal, else as JSON."""
    handler = logging.StreamHandler()
    is_watched = handler.stream.isatty()
    handler.setFormatter(RequestLines() if is_watched else logging.Formatter("%(message)s"))
    logger = logging.getLogger("lowwater.gateway")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _serve_recall(
    store: str, *, session: str, tenant: str, project: Path | None, source: str, compact: bool
) -> None:
    """Serve the recall tools over standard input and output until the client closes them."""
    try:
        from lowwater.gateway.mcp_server import server_over  # noqa: PLC0415  # an optional package
    except ImportError as error:
        raise BadSetting(f"this needs the package {error.name}: pip install 'lowwater[mcp]'") from None
    with opened_store(store, is_needed=False) as opened:
        server_over(
            opened,
            open_session=_open_by_name,
            sources=_sources(source, tenant, project),
            session=session,
            version=version("lowwater"),
            compact=compact,
        ).run("stdio")


def _sources(source: str, tenant: str, project: Path | None) -> tuple[str, ...]:
    """Return the sources that may be searched: the one named, or those of a tenant in a project.

    Sessions of `lowwater serve` have no project by default, so a tenant's sessions without one are included.
    """
    if source:
        return (source,)
    own = source_of(tenant or OWN_TENANT, project_at(project or Path.cwd()))
    return (own, source_of(tenant)) if tenant and project is None else (own,)


def _open_by_name(store: Store, name: str) -> Session:
    return open_kept(store, find_session(store, name))


def print_bill(
    store: Store, *, since: float, nothing: str, json: bool = False, shadow: bool = False, address: str = ""
) -> None:
    """Print what each session cost since `since`, and what compaction saved; the sentence `nothing` if there was none.

    It ends with the commands that show the session with the most calls and undo its last compaction; `address` is the value of `--store`.
    It goes to standard error, because standard output belongs to the client. In shadow mode, the costs are what the calls
    really cost, and the savings what they would have been.
    """
    registry = load_registry()
    every = [
        each
        for each in accounts_of(store)
        if each.session.about.source.startswith(f"{SHADOW_SOURCE}:") is shadow
    ]
    accounts = [later_than(each, since) for each in every if each.session.changed_at >= since]
    totals = [total_of(account, registry) for account in accounts]
    lines = [session_line(account, total) for account, total in zip(accounts, totals, strict=True)]
    if shadow:
        lines = [replace(line, cost=_if_complete(total)) for line, total in zip(lines, totals, strict=True)]
    if json:
        bill = _bill_json(accounts, lines, totals, shadow=shadow)
        sys.stderr.write(msgspec.json.encode(bill).decode() + "\n")
    elif not lines:
        say(nothing)
    else:
        _print_lines(accounts, lines, totals, shadow=shadow, address=address)


def _if_complete(total: Figures) -> int | None:
    """Return what a session's calls really cost in shadow mode; None if a price or a usage is not known."""
    return None if total.unpriced_turns else total.untouched


def _print_lines(
    accounts: list[Account],
    lines: list[SessionLine],
    totals: list[Figures],
    *,
    shadow: bool,
    address: str,
) -> None:
    console = Console(file=sys.stderr, highlight=False)
    console.print()
    console.print(sessions_table(lines, width=page_width(), now=time.time()))
    calls = counted(sum(total.turns for total in totals), "call")
    cost, saved = _total_cost(lines), _total_net(totals)
    if shadow:
        console.print(_shadow_sentence(calls, cost, saved, _total_estimated(totals)), soft_wrap=True)
        return
    console.print(
        f"{calls} for {amount(cost)}; {_saved_sentence(cost, saved, sum(total.passes for total in totals))}"
    )
    rhythm = cadence(accounts)
    if rhythm.events:
        console.print(
            f"{figure(rhythm.events_per_100_turns)} compactions in 100 calls; they had {short(rhythm.rewritten)} tokens written to "
            "the cache again"
        )
    kept = total_kept(pauses_kept(account, load_registry()) for account in accounts)
    if kept.pings:
        each = None if kept.cost is None else kept.cost // kept.pings
        console.print(f"kept warm {kept.pings} × {amount(each)}, saved {amount(kept.saved)}")
    if any(total.recall_offered for total in totals):
        console.print(f"recall {recall_sentence(totals)}")
    if off := _calls_without_thinking(accounts):
        console.print(
            f"thinking was disabled in {counted(off, 'call')}: a compaction removed the messages that started it"
        )
    busiest = max(lines, key=lambda line: line.turns)
    console.print(_next_commands(busiest, address), soft_wrap=True)


def _saved_sentence(cost: int | None, saved: int | None, compactions: int) -> str:
    """Say what the calls would have cost without compaction, and what compaction saved."""
    if not compactions:
        return "nothing had to be compacted"
    by = counted(compactions, "compaction")
    if cost is None or saved is None:
        return f"what {by} saved is not known: a price is missing"
    if saved < 0:
        return f"{by} cost {amount(-saved)} more than they have saved so far"
    share = f" ({saved / (cost + saved):.0%})" if cost + saved else ""
    return f"without Lowwater about {amount(cost + saved)}: {by} saved {amount(saved)}{share}"


def _next_commands(line: SessionLine, address: str) -> Text:
    """Return the commands that show a session and undo its last compaction."""
    commands = {"see it": ["dashboard", line.name]}
    if line.compactions:
        commands["undo"] = ["rewind", line.name]
    said = (
        f"{name + ':':8}{printable(command_line(words, store=address))}" for name, words in commands.items()
    )
    return Text("\n".join(said))


def _shadow_sentence(calls: str, cost: int | None, saved: int | None, estimated: int | None) -> str:
    """Say what the calls cost and would have cost, and how far off the estimate of the former would have been."""
    if cost is None or saved is None:
        return f"{calls} for {amount(cost)}; what they would have cost with Lowwater cannot be said: a price or a usage is unknown"
    share = f" ({abs(saved) / cost:.0%})" if cost else ""
    said = (
        f"{calls} for {amount(cost)}; with Lowwater they would have cost {amount(cost - saved)}, "
        f"{amount(abs(saved))}{share} {'less' if saved >= 0 else 'more'}"
    )
    if estimated is None or not cost:
        return said
    return f"{said}; its own estimate of the {amount(cost)} would have been {amount(estimated)}"


def _bill_json(
    accounts: list[Account], lines: list[SessionLine], totals: list[Figures], *, shadow: bool
) -> dict[str, object]:
    """Return the bill as JSON values; money is in nano-dollars, None if a price is unknown."""
    cost, net = _total_cost(lines), _total_net(totals)
    bill: dict[str, object] = {"calls": sum(total.turns for total in totals), "cost": cost}
    if shadow:
        would = None if cost is None or net is None else cost - net
        bill |= {"would_have_cost": would, "would_have_saved": net, "estimated": _total_estimated(totals)}
    else:
        rhythm = cadence(accounts)
        bill |= {"net": net, "recall": recall_json(totals)}
        bill |= {"compactions": rhythm.events, "per_100_calls": rhythm.events_per_100_turns}
        bill |= {"tokens_rewritten": rhythm.rewritten}
        kept = total_kept(pauses_kept(account, load_registry()) for account in accounts)
        bill |= {"kept_warm": {"calls": kept.pings, "cost": kept.cost, "saved": kept.saved}}
        bill |= {"thinking_off": _calls_without_thinking(accounts)}
    return {**bill, "sessions": lines}


def _total_estimated(totals: list[Figures]) -> int | None:
    known = [total.shadow_estimated for total in totals]
    return (
        None
        if None in known or any(total.unpriced_turns for total in totals)
        else sum(each or 0 for each in known)
    )


def _calls_without_thinking(accounts: list[Account]) -> int:
    """Return the number of calls for which thinking was disabled because the provider would have refused it."""
    return sum(record.thinking_off for account in accounts for record in account.records)


def _total_cost(lines: list[SessionLine]) -> int | None:
    known = [line.cost for line in lines]
    return None if None in known else sum(each or 0 for each in known)


def _total_net(totals: list[Figures]) -> int | None:
    nets = [total.net for total in totals]
    return None if None in nets else sum(each or 0 for each in nets)
