"""The options of a gateway, and the names derived from them."""

import secrets
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from msgspec import Struct

from lowwater.core.costs.idle import IdleMode
from lowwater.errors import BadSetting
from lowwater.settings import Settings

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com"
OWN_TENANT = "me"
"""The tenant of everything that `lowwater run` starts."""
SOURCE = "gateway"
SHADOW_SOURCE = "shadow"
SHADOW_TENANT = "shadow:"
"""What the tenants of shadow sessions begin with in the store, so that no live gateway finds them by a client's list."""

Marking = Literal["client", "auto"]
IDLE_HOURS = 4
"""For how many hours after a client's last request something may be done in its pause."""
SummaryConsent = Literal["never", "asked", "api-keys"]


class GatewayOptions(Struct, frozen=True, kw_only=True):
    """Everything an operator can configure."""

    anthropic_upstream: str = ANTHROPIC
    openai_upstream: str = OPENAI
    policy: str | None = None
    settings: Settings = Settings()
    tenant: str = ""
    """The tenant of all clients, whatever their credentials; empty for one tenant per credential."""
    marks: Marking = "client"
    """`client`: place cache marks only where the client sets some itself, with its lifetime; `auto`: wherever the provider takes
    them, with the lifetime that pays, for clients with an API key."""
    recall: bool = False
    """Whether recall tools are added to requests, and their calls answered here."""
    summaries: SummaryConsent = "asked"
    """Whose credential may pay for summaries while one of its requests is open: nobody's (`never`), that of clients which send
    `x-lowwater-summaries: on` (`asked`), or any API key (`api-keys`). A subscription's login never does."""
    summary_seconds: float = 30.0
    """How long the end of an answer may wait for a summary on its client's credential; the first byte never waits."""
    summary_model: str = ""
    """The model that writes summaries on the operator's own credential; empty for none."""
    idle: IdleMode = "off"
    """What may be done in a client's pause before its cached prefix expires."""
    idle_consent: Literal["asked", "api-keys"] = "asked"
    """Whose credentials may be used for that: those of clients that send `x-lowwater-idle: on` (`asked`), or any API key (`api-keys`)."""
    idle_dollars: float = 1.0
    """The most that keeping one session warm may cost in this process."""
    shadow: bool = False
    """Whether requests and answers are left as they are, and it is only computed what Lowwater would have done."""
    require_key: bool = False
    """Whether requests without a credential are refused."""
    access_keys: tuple[str, ...] = ()
    """If there are any, a request needs one of them in the header `x-lowwater-key`, which is not forwarded."""
    capability: str = ""
    """If it is set, only paths that begin with it are forwarded to a provider; it is never logged, stored or forwarded itself."""
    dashboard_token: str = ""
    """What opens the dashboard; empty for a random one."""
    hosts: tuple[str, ...] = ()
    """Hosts that the gateway answers to in addition to loopback ones, in lower case and without a port."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may send requests in addition to its own, in lower case: `https://app.example.com`."""
    trusts_tokens: bool = False
    """Whether a token counts by the account in its claims; only safe if something in front of the gateway verifies signatures."""
    joins_by_summary: bool = False
    """Whether a list that begins with a session's summary continues that session although its client names none."""
    project: str = ""
    """Distinguishes sessions within a tenant, for `lowwater serve --mcp`; empty for none."""
    most_bytes: int = 64 * 1024 * 1024
    """The largest request body."""
    most_requests: int = 512
    """Requests under way at once; further ones are told to come back. No client gets more slots than stay free for others."""
    most_held_bytes: int = 2 * 1024 * 1024 * 1024
    """Memory for the bodies of all requests under way, including the copies that are made of them."""
    most_messages: int = 20_000
    """The longest list of messages that is read; a longer one is forwarded unchanged. 0 for no limit."""
    header_seconds: float = 30.0
    """How long a client may take to send the head of a request."""
    stalled_seconds: float = 300.0
    """How long a client may stop reading its answer."""
    connect_seconds: float = 10.0
    """How long to wait for a connection to a provider."""
    body_seconds: float = 60.0
    """How long a client may take to send its body."""
    open_sessions: int = 1_000
    """Sessions kept in memory; others are loaded again when they are needed."""
    open_messages: int = 500_000
    """Messages of all sessions kept in memory: each takes about two kilobytes on top of its text."""
    remembered_bytes: int = 256 * 1024 * 1024
    """Bytes of messages kept decoded in memory."""

    def __post_init__(self) -> None:
        if self.shadow and self.marks != "client":
            raise BadSetting("shadow: it compares with the client's own cache marks; leave out --marks")
        for name in ("anthropic_upstream", "openai_upstream"):
            url = getattr(self, name)
            if not url.startswith(("http://", "https://")):
                raise BadSetting(
                    f"{name.replace('_', '-')}: {url!r} is no URL: it must begin with http:// or https://"
                )


def new_capability() -> str:
    """Return a random secret for a private URL, in a form that our redaction recognises wherever the URL is printed."""
    random = ""
    while not any(map(str.isdigit, random)):  # redaction takes letters alone for ordinary words
        random = secrets.token_urlsafe(24)
    return f"lw-{random}"


def short_tenant(tenant: str) -> str:
    """Return the part of a tenant's hash by which the source of its sessions names it."""
    return tenant[:8]


def source_of(tenant: str, project: str = "", *, shadow: bool = False) -> str:
    """Return the source of a tenant's sessions, or of those of one project."""
    source = SHADOW_SOURCE if shadow else SOURCE
    return f"{source}:{tenant}:{project}" if project else f"{source}:{tenant}"


def project_at(folder: Path) -> str:
    """Return the name of the project around a folder: the folder with `.git`, and a short hash of its path."""
    here = folder.resolve()
    root = next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
    return f"{root.name}-{blake2b(str(root).encode(errors='replace'), digest_size=4).hexdigest()}"


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this machine; only names that DNS cannot point elsewhere count."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
