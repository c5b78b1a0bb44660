"""`lowwater serve`: the gateway in front of agents one did not write."""

import logging
import os
from typing import Annotated, Literal

import typer

from lowwater.cli.failing import say
from lowwater.cli.settings_flags import with_settings
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.errors import BadSetting
from lowwater.gateway.options import ANTHROPIC, OPENAI, Options
from lowwater.values.settings import Resolved

ACCESS_KEYS = "LOWWATER_GATEWAY_KEYS"

AnthropicUpstream = Annotated[
    str, typer.Option(metavar="URL", help="Where Anthropic-speaking requests go.", show_default=False)
]
OpenAiUpstream = Annotated[
    str, typer.Option(metavar="URL", help="Where OpenAI-speaking requests go.", show_default=False)
]
Marks = Annotated[
    Literal["client", "auto"],
    typer.Option(
        help="Cache marks: only where the client sets some itself, or ours wherever they are taken."
    ),
]
Recall = Annotated[
    bool, typer.Option("--recall", help="Give models the recall tools; their calls are answered here.")
]
Summaries = Annotated[
    bool,
    typer.Option(
        "--summaries-on-client-key",
        help="Let summaries be asked for on a client's own key, while it waits for an answer.",
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
            help=f"Refuse requests without a credential, and, if {ACCESS_KEYS} names some, without one of them in x-lowwater-key.",
        ),
    ] = False,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="The largest request body.")] = 64,
    max_requests: Annotated[int, typer.Option(min=1, metavar="N", help="Requests under way at once.")] = 512,
    max_messages: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="The longest list that is worked on; a longer one goes on as it came."
        ),
    ] = 20_000,
    quiet_log: Annotated[bool, typer.Option("--no-log", help="Write no line per request.")] = False,
    settings: Resolved,
) -> None:
    """Run the gateway: point a client's base URL at it, and its conversations are compacted when that pays.

    Requests with nothing to compact go through byte for byte. Every message
    is kept in the store; keys go through and are neither kept nor logged.
    `/healthz` and `/metrics` are for operators.

    lowwater serve
    ANTHROPIC_BASE_URL=http://127.0.0.1:4141 claude
    OPENAI_BASE_URL=http://127.0.0.1:4141/v1 your-agent
    lowwater serve --store postgresql://… --require-key     any number of replicas
    """
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
        access_keys=_access_keys() if require_key else (),
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
        from lowwater.gateway.serving import serve as run  # noqa: PLC0415
    except ImportError as error:
        raise BadSetting(
            f"the gateway needs the package {error.name}: pip install 'lowwater[gateway]'"
        ) from None
    with opened_store(store, redact=options.settings.privacy.redact, creates=True) as opened:
        run(
            Gateway(options, opened),
            host=host,
            port=port,
            ready=lambda url: say(
                f"serving on {url}: set ANTHROPIC_BASE_URL={url} or OPENAI_BASE_URL={url}/v1; Ctrl-C stops it"
            ),
        )


def log_to_stderr() -> None:
    """Write the gateway's lines to standard error, each as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("lowwater.gateway")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _access_keys() -> tuple[str, ...]:
    return tuple(key.strip() for key in os.environ.get(ACCESS_KEYS, "").split(",") if key.strip())
