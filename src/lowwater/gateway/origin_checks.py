"""Protection against web pages: which hosts, origins and content types are accepted, and the capability in a private URL.

A browser lets any page send requests to a loopback address. It adds an `Origin` to all requests but plain reads, says where a
read came from (`Sec-Fetch-Site`), and sends JSON only after a preflight request. DNS rebinding makes a page look like one of
our own, except for its `Host`.
"""

import hmac
import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes, urlsplit

from msgspec import Struct

from lowwater.gateway.client_request import FORMATS
from lowwater.gateway.options import GatewayOptions, is_loopback
from lowwater.gateway.relay import Scope
from lowwater.gateway.upstream import Refused

_JSON = "application/json"
_FOREIGN_SITES = frozenset({"cross-site", "same-site"})
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::[0-9]{0,5})?")
"""A single `Host` as the standard defines it; two of them joined by a comma do not match."""
_DEFAULT_PORTS = {"http": 80, "https": 443}
_OPERATOR_PATHS = frozenset({"/healthz", "/metrics"})
"""Paths for the operator, which the capability does not open."""


class CheckedScope(Struct, frozen=True, kw_only=True):
    """A request's scope without the capability that its path began with."""

    scope: Scope
    is_open: bool
    """Whether it may be forwarded to a provider: it had the capability, or none is required."""


def strip_capability(scope: Scope, capability: str) -> CheckedScope:
    """Remove the capability from a request's path and query, so that it is never logged, stored or forwarded.

    Anywhere but at the beginning of the path it is removed as well, but opens nothing.
    """
    if not capability:
        return CheckedScope(scope=scope, is_open=True)
    secret = capability.encode()
    scope = {**scope, "query_string": _without(secret, scope.get("query_string", b""))}
    path, raw = scope["path"], scope.get("raw_path") or scope["path"].encode()
    first, _, rest = path[1:].partition("/")
    raw_first, _, raw_rest = raw[1:].partition(b"/")
    is_given = hmac.compare_digest(first.encode(), secret) and raw_first == secret
    if is_given and capability not in rest and f"/{rest}" not in _OPERATOR_PATHS:
        return CheckedScope(scope={**scope, "path": f"/{rest}", "raw_path": b"/" + raw_rest}, is_open=True)
    clean = {"path": path.replace(capability, "-"), "raw_path": raw.replace(secret, b"-")}
    return CheckedScope(scope={**scope, **clean}, is_open=False)


def _without(secret: bytes, query: bytes) -> bytes:
    """Return a query without the fields that hold a secret, percent-encoded or not."""
    return b"&".join(field for field in query.split(b"&") if secret not in unquote_to_bytes(field))


def refuse_web_pages(scope: Scope, headers: Mapping[str, str], options: GatewayOptions) -> None:
    """Raise Refused for a request that a foreign page may have sent, or whose content type needs no preflight request."""
    _check_host(scope, headers, options)
    _check_origin(scope, headers, options)
    path = scope["path"].rstrip("/")
    header = headers.get("content-type", "")
    kind = header.partition(";")[0].strip().lower()
    if scope["method"] == "POST" and path in FORMATS and (kind != _JSON or "," in header):
        raise Refused(415, f"the content type of this request must be {_JSON}")


def refuse_without_capability(checked: CheckedScope) -> None:
    """Raise Refused for a request to a provider that lacks the capability."""
    if not checked.is_open:
        raise Refused(403, "this gateway belongs to the program that `lowwater run` started")


def _check_host(scope: Scope, headers: Mapping[str, str], options: GatewayOptions) -> None:
    """Refuse hosts that are not ours: other than loopback at a loopback address, or not listed where the operator lists some."""
    header = headers.get("host", "")
    host = _host_in(header)
    if header and not host:
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


def _check_origin(scope: Scope, headers: Mapping[str, str], options: GatewayOptions) -> None:
    """Refuse pages of other origins; a loopback origin is ours only with the port that we listen on."""
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
    """Return the host in a `Host` header, without its port; empty if there is none, or anything else beside it."""
    found = _HOST.fullmatch(header.strip())
    return found["host"].strip("[]").lower() if found else ""
