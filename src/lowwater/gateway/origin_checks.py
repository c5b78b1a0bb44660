"""No web page gets in: which hosts, origins and content types a request may name, and the capability in a private URL.

A browser lets any page send requests to a loopback address. It adds an `Origin` to all but plain reads, marks where a read came
from (`Sec-Fetch-Site`), and asks before it sends JSON. DNS rebinding makes a page look like one of our own, but not its `Host`.
"""

import hmac
import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes, urlsplit

from msgspec import Struct

from lowwater.gateway.client_request import FORMATS
from lowwater.gateway.options import Options, is_loopback
from lowwater.gateway.relay import Scope
from lowwater.gateway.upstream import Refused

_JSON = "application/json"
_FOREIGN_SITES = frozenset({"cross-site", "same-site"})
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::[0-9]{0,5})?")
"""A `Host` as the standard has it; two of them, joined by a comma, are none."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OPERATORS = frozenset({"/healthz", "/metrics"})
"""Paths that a capability does not open."""


class Entered(Struct, frozen=True, kw_only=True):
    """A request without the capability that its path began with."""

    scope: Scope
    is_opened: bool
    """Whether the proxy's routes are open to it: it brought the capability, or none is asked for."""


def enter(scope: Scope, capability: str) -> Entered:
    """Take the capability out of a request's path and query, so that nobody behind this logs, stores or forwards it.

    A path that has it anywhere but at its beginning loses it as well, and opens nothing.
    """
    if not capability:
        return Entered(scope=scope, is_opened=True)
    secret = capability.encode()
    scope = {**scope, "query_string": _without(secret, scope.get("query_string", b""))}
    path, raw = scope["path"], scope.get("raw_path") or scope["path"].encode()
    first, _, rest = path[1:].partition("/")
    raw_first, _, raw_rest = raw[1:].partition(b"/")
    brought = hmac.compare_digest(first.encode(), secret) and raw_first == secret
    if brought and capability not in rest and f"/{rest}" not in _OPERATORS:
        return Entered(scope={**scope, "path": f"/{rest}", "raw_path": b"/" + raw_rest}, is_opened=True)
    clean = {"path": path.replace(capability, "-"), "raw_path": raw.replace(secret, b"-")}
    return Entered(scope={**scope, **clean}, is_opened=False)


def _without(secret: bytes, query: bytes) -> bytes:
    """Return a query without the fields that hold a secret, however it is written in them."""
    return b"&".join(field for field in query.split(b"&") if secret not in unquote_to_bytes(field))


def refuse_web_pages(scope: Scope, headers: Mapping[str, str], options: Options) -> None:
    """Raise Refused for a request that a page of somebody else may have sent, or whose content type a page may send unasked."""
    _check_host(scope, headers, options)
    _check_origin(scope, headers, options)
    path = scope["path"].rstrip("/")
    told = headers.get("content-type", "")
    kind = told.partition(";")[0].strip().lower()
    if scope["method"] == "POST" and path in FORMATS and (kind != _JSON or "," in told):
        raise Refused(415, f"the content type of this request must be {_JSON}")


def refuse_unless_opened(entered: Entered) -> None:
    """Raise Refused for a request that leads to a provider and did not bring the capability."""
    if not entered.is_opened:
        raise Refused(403, "this gateway belongs to the program that `lowwater run` started")


def _check_host(scope: Scope, headers: Mapping[str, str], options: Options) -> None:
    """Refuse hosts that are not ours: any but loopback ones at a loopback address, and all others where some are named."""
    told = headers.get("host", "")
    host = _host_in(told)
    if told and not host:
        raise Refused(
            403, "this gateway does not answer to that Host: it must be one host, and its port at most"
        )
    if host in options.hosts:
        return
    server = scope.get("server")
    at_loopback = server is not None and is_loopback(str(server[0]))
    if (at_loopback and not is_loopback(host)) or (not at_loopback and options.hosts):
        raise Refused(
            403, "this gateway does not answer to that Host: an operator can name it by --allow-host"
        )


def _check_origin(scope: Scope, headers: Mapping[str, str], options: Options) -> None:
    """Refuse pages of other origins; one at a loopback address is ours only at the port that we listen on."""
    origin = headers.get("origin", "")
    if origin:
        if origin.lower().rstrip("/") not in options.origins and not _is_own(origin, scope):
            raise Refused(
                403,
                "this gateway takes no requests of that Origin: an operator can name it by --allow-origin",
            )
        return
    sites = {site.strip() for site in headers.get("sec-fetch-site", "").lower().split(",")}
    if sites & _FOREIGN_SITES:
        raise Refused(403, "this gateway takes no requests of other sites' pages")


def _is_own(origin: str, scope: Scope) -> bool:
    try:
        parts = urlsplit(origin)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return False
    server = scope.get("server")
    return (
        server is not None
        and "@" not in parts.netloc
        and is_loopback(parts.hostname or "")
        and port == server[1]
    )


def _host_in(header: str) -> str:
    """Return the host that a `Host` header names, without its port; empty if it names none, or more than that."""
    found = _HOST.fullmatch(header.strip())
    return found["host"].strip("[]").lower() if found else ""
