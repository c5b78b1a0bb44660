"""`lowwater serve`: the gateway in front of agents one did not write."""

import logging
import os
import sys
import time
from typing import Annotated, Any, Literal

import msgspec
import typer

from lowwater.cli.bill import print_bill
from lowwater.cli.failing import say
from lowwater.cli.kept_words import printable
from lowwater.cli.settings_flags import with_settings
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.errors import BadSetting
from lowwater.gateway.options import ANTHROPIC, OPENAI, Options, is_loopback
from lowwater.settings.resolve import Resolved

ACCESS_KEYS = "LOWWATER_GATEWAY_KEYS"

AnthropicUpstream = Annotated[
    str, typer.Option(metavar="URL", help="Where Anthropic-speaking requests go.", show_default=False)
]
OpenAiUpstream = Annotated[
    str, typer.Option(metavar="URL", help="Where OpenAI-speaking requests go.", show_default=False)
]
Marks = Annotated[
    Literal["client", "auto"],
    typer.Option(help="Cache marks: the client's own, or ours too."),
]
Recall = Annotated[bool, typer.Option("--recall", help="Give the model recall tools.")]
ContinueBySummary = Annotated[
    bool,
    typer.Option(
        "--continue-by-summary",
        help="Go on by a quoted summary.",
    ),
]
Summaries = Annotated[
    bool,
    typer.Option(
        "--summaries-on-client-key",
        help="Ask on the client's key.",
    ),
]


@with_settings
def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 is any free one.")] = 4141,
    anthropic_upstream: AnthropicUpstream = "",
    openai_upstream: OpenAiUpstream = "",
    store: StoreAddress = "",
    tenant: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="All clients are this one tenant; without it each API key is a tenant of its own.",
            show_default=False,
        ),
    ] = "",
    marks: Marks = "client",
    recall: Recall = False,
    summaries_on_client_key: Summaries = False,
    require_key: Annotated[
        bool,
        typer.Option(
            "--require-key",
            help="Refuse requests without a credential of their own.",
        ),
    ] = False,
    open_to_all: Annotated[
        bool,
        typer.Option(
            "--open-to-all",
            help=f"Listen where other machines can reach it although {ACCESS_KEYS} names no keys.",
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A Host to answer to beside this machine's own; may be repeated."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="An Origin whose pages may send requests; may be repeated."),
    ] = None,
    trust_tokens: Annotated[
        bool,
        typer.Option(
            "--trust-tokens",
            help="Tell tenants by the accounts that tokens name: something in front must check signatures.",
        ),
    ] = False,
    continue_by_summary: ContinueBySummary = False,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="The largest request body.")] = 64,
    max_requests: Annotated[int, typer.Option(min=1, metavar="N", help="Requests under way at once.")] = 512,
    max_messages: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="The longest list that is worked on; a longer one goes on as it came."
        ),
    ] = 20_000,
    quiet_log: Annotated[
        bool,
        typer.Option(
            "--no-log", help="Write no line per request (on a terminal for a person, in a pipe as JSON)."
        ),
    ] = False,
    settings: Resolved,
) -> None:
    """Run the gateway: point a client's base URL at it, and its conversations are compacted when that pays.

    Requests with nothing to compact go through byte for byte. Every message
    is kept in the store once the provider took it; keys go through and are
    neither kept nor logged. If LOWWATER_GATEWAY_KEYS names keys, every request
    must bring one as x-lowwater-key; only this machine's own addresses need
    none. `/healthz` and `/metrics` are for operators.

    lowwater serve
    ANTHROPIC_BASE_URL=http://127.0.0.1:4141 claude
    OPENAI_BASE_URL=http://127.0.0.1:4141/v1 your-agent
    LOWWATER_GATEWAY_KEYS=one,two lowwater serve --host 0.0.0.0
    lowwater serve --store postgresql://…      any number of replicas
    """
    access_keys = _access_keys()
    if not access_keys and not open_to_all and not is_loopback(host):
        raise BadSetting(
            f"{host} can be reached by other machines, and {ACCESS_KEYS} names no keys: set it to one or several, separated by "
            "commas, which clients send as x-lowwater-key; or say --open-to-all"
        )
    options = Options(
        anthropic_upstream=anthropic_upstream or ANTHROPIC,
        openai_upstream=openai_upstream or OPENAI,
        settings=settings.settings,
        tenant=tenant,
        marks=marks,
        recall=recall,
        summaries=summaries_on_client_key,
        summary_model=settings.settings.compression.summary_model or "",
        require_key=require_key,
        access_keys=access_keys,
        hosts=tuple(each.strip().lower() for each in allow_host or ()),
        origins=tuple(each.strip().lower().rstrip("/") for each in allow_origin or ()),
        trusts_tokens=trust_tokens,
        joins_by_summary=continue_by_summary,
        most_bytes=max_body * 1024 * 1024,
        most_requests=max_requests,
        most_messages=max_messages,
    )
    if not quiet_log:
        log_to_stderr()
    run_gateway(options, store, host=host, port=port)


def run_gateway(options: Options, store: str, *, host: str, port: int) -> None:
    """Serve until a signal comes."""
    try:
        from lowwater.gateway.app import Gateway  # noqa: PLC0415  # an optional package
        from lowwater.gateway.server import serve as run  # noqa: PLC0415
    except ImportError as error:
        raise BadSetting(
            f"the gateway needs the package {error.name}: pip install 'lowwater[gateway]'"
        ) from None
    began = time.time()
    with opened_store(store, redact=options.settings.privacy.redact, creates=True) as opened:
        try:
            run(
                Gateway(options, opened),
                host=host,
                port=port,
                ready=lambda url: say(
                    f"serving on {url}: set ANTHROPIC_BASE_URL={url} or OPENAI_BASE_URL={url}/v1; Ctrl-C stops it"
                ),
            )
        finally:
            if sys.stderr.isatty():
                print_bill(opened, since=began, nothing="no conversation came through the gateway")


class RequestLines(logging.Formatter):
    """Writes the gateway's line about a request for a person; every other line as it is."""

    def format(self, record: logging.LogRecord) -> str:
        """Return when, what was asked of which model, what was done, and how large and how fast it was."""
        said = record.getMessage()
        try:
            line = msgspec.json.decode(said, type=dict[str, Any])
        except msgspec.DecodeError:
            return said
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
    """Write a line for each request to standard error: for a person on a terminal, else as JSON."""
    handler = logging.StreamHandler()
    is_watched = handler.stream.isatty()
    handler.setFormatter(RequestLines() if is_watched else logging.Formatter("%(message)s"))
    logger = logging.getLogger("lowwater.gateway")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _access_keys() -> tuple[str, ...]:
    return tuple(key.strip() for key in os.environ.get(ACCESS_KEYS, "").split(",") if key.strip())
