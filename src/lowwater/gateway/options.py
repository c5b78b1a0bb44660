"""How a gateway is run."""

import secrets
from hashlib import blake2b
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from msgspec import Struct

from lowwater.errors import BadSetting
from lowwater.settings import Settings

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com"
OWN_TENANT = "me"
"""The tenant of everything that `lowwater run` starts."""
SOURCE = "gateway"

Marking = Literal["client", "auto"]


class Options(Struct, frozen=True, kw_only=True):
    """Everything an operator may choose."""

    anthropic_upstream: str = ANTHROPIC
    openai_upstream: str = OPENAI
    policy: str | None = None
    settings: Settings = Settings()
    tenant: str = ""
    """The tenant of every client, whatever its credential; empty binds each tenant to its credential."""
    marks: Marking = "client"
    """`client`: cache marks only where the client sets some itself; `auto`: ours, wherever the provider takes them."""
    recall: bool = False
    """Whether recall tools are added to requests, and their calls answered here."""
    summaries: bool = False
    """Whether summaries may be asked for on a client's credential, while a request of it is open."""
    summary_seconds: float = 30.0
    """How long the end of an answer may wait for a summary on its client's credential; its first byte never does."""
    summary_model: str = ""
    """The model that writes summaries on the operator's own credential; empty for none."""
    require_key: bool = False
    """Whether a request without a credential is refused here."""
    access_keys: tuple[str, ...] = ()
    """If there are any, one of them has to come in the header `x-lowwater-key`, which goes no further."""
    capability: str = ""
    """If it is set, only paths that begin with it lead to a provider; it is never logged, stored or forwarded."""
    hosts: tuple[str, ...] = ()
    """Hosts that the gateway answers to beside loopback ones, in lower case and without a port."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may send requests beside its own, in lower case: `https://app.example.com`."""
    trusts_tokens: bool = False
    """Whether a token counts by the account that it names: only where somebody in front of the gateway checks signatures."""
    joins_by_summary: bool = False
    """Whether a list that begins with a session's summary goes on with that session although its client names none."""
    project: str = ""
    """What the sessions are told apart by within a tenant, for `lowwater mcp`; empty for none."""
    most_bytes: int = 64 * 1024 * 1024
    """The largest request body."""
    most_requests: int = 512
    """Requests under way at once; those beyond are told to come back. No client holds more places than are free for others."""
    most_held_bytes: int = 2 * 1024 * 1024 * 1024
    """Memory for the bodies of all requests under way, each counted with the copies that are made of it."""
    most_messages: int = 20_000
    """The longest list of messages that is worked on; a longer one goes on as it came. 0 is no limit."""
    header_seconds: float = 30.0
    """How long a client may take to send the head of a request."""
    stalled_seconds: float = 300.0
    """How long a client may take none of its answer."""
    connect_seconds: float = 10.0
    """How long to wait for a connection to a provider."""
    body_seconds: float = 60.0
    """How long a client may take to send its body."""
    open_sessions: int = 1_000
    """Sessions kept ready in memory; others are read again when they are needed."""
    open_messages: int = 500_000
    """Messages of all sessions kept ready: each takes about two kilobytes beside its text."""
    remembered_bytes: int = 256 * 1024 * 1024
    """Bytes of messages kept decoded in memory."""

    def __post_init__(self) -> None:
        for name in ("anthropic_upstream", "openai_upstream"):
            url = getattr(self, name)
            if not url.startswith(("http://", "https://")):
                raise BadSetting(
                    f"{name.replace('_', '-')}: {url!r} is no URL: it must begin with http:// or https://"
                )


def new_capability() -> str:
    """Return a random word for a private URL, written such that redaction knows it wherever somebody prints the URL."""
    drawn = ""
    while not any(map(str.isdigit, drawn)):  # redaction takes letters alone for words
        drawn = secrets.token_urlsafe(24)
    return f"lw-{drawn}"


def source_of(tenant: str, project: str = "") -> str:
    """Return the source under which a tenant's sessions are kept; those of a project are told apart within it."""
    return f"{SOURCE}:{tenant}:{project}" if project else f"{SOURCE}:{tenant}"


def project_at(folder: Path) -> str:
    """Return what the project around a folder is called: its name and a few characters of its path."""
    here = folder.resolve()
    root = next((each for each in (here, *here.parents) if (each / ".git").exists()), here)
    return f"{root.name}-{blake2b(str(root).encode(errors='replace'), digest_size=4).hexdigest()}"


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this machine, as no name server can claim for another."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
