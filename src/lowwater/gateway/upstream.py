"""The providers behind the gateway: where a request goes, with which headers, and how the gateway refuses one itself."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.tenants import ACCESS, CONSENT, KEEP_WARM, UNTOUCHED

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_NOT_FORWARDED = frozenset(
    {b"host", b"content-length", b"expect"}
    | {name.encode() for name in (ACCESS, CONSENT, KEEP_WARM, UNTOUCHED)}
)
_BETAS = b"anthropic-beta"
_LONGEST_HEADER = 256 * 1024
"""Bytes that one of a provider's headers may have."""
_BODILESS = frozenset({204, 304})
_ERROR_TYPES = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("authentication_error", "invalid_request_error"),
    403: ("permission_error", "permission_error"),
    408: ("timeout_error", "timeout"),
    413: ("request_too_large", "invalid_request_error"),
    415: ("invalid_request_error", "invalid_request_error"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("api_error", "server_error"),
    502: ("api_error", "server_error"),
    503: ("overloaded_error", "server_error"),
    504: ("timeout_error", "server_error"),
}
"""Error types by status: Anthropic's and OpenAI's."""


class Upstreams:
    """The two providers, and one pool of connections to them."""

    def __init__(self, options: GatewayOptions) -> None:
        self._options = options
        self._client: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Open the pool of connections."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._options.connect_seconds)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.close()

    def base_url(self, path: str, headers: Mapping[str, str]) -> str:
        """Return the URL of the provider that a request is for, as its path and headers tell."""
        return (
            self._options.anthropic_upstream if is_anthropic(path, headers) else self._options.openai_upstream
        )

    async def send(
        self, method: str, base_url: str, target: str, headers: Headers, body: bytes
    ) -> aiohttp.ClientResponse:
        """Send a request and return the response as soon as its headers are there."""
        assert self._client is not None, "open it first"
        return await self._client.request(
            method,
            # The client has encoded it already; it must not be normalised.
            URL(
                url_of(base_url, target, named_by_base=base_url == self._options.openai_upstream),
                encoded=True,
            ),
            headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers],
            data=body or None,
            allow_redirects=False,
            proxy=proxy_for(base_url),
        )


def proxy_for(base_url: str) -> str | None:
    """Return the proxy that the environment sets for a provider (`HTTPS_PROXY`, `NO_PROXY`); None if there is none.

    aiohttp's own `trust_env` is not used: a password in a .netrc would replace the client's key.
    """
    parts = urlsplit(base_url)
    named = getproxies().get(parts.scheme)
    return named if named and not proxy_bypass(parts.hostname or "") else None


def url_of(base_url: str, target: str, *, named_by_base: bool = False) -> str:
    """Return the URL of a path at a provider, whose base URL may or may not end with the version that paths begin with.

    `named_by_base`: the base URL is of the kind that OpenAI's clients take, whose path replaces the version (`/api/v4`).
    """
    base = base_url.rstrip("/")
    stands_for_version = named_by_base and bool(urlsplit(base).path) and not target.startswith("/v1/messages")
    if target.startswith("/v1/") and (stands_for_version or base.endswith("/v1")):
        return base + target.removeprefix("/v1")
    return base + target


def is_anthropic(path: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is for a provider with Anthropic's API; its path decides, or else its headers."""
    if path.startswith(("/v1/chat/", "/v1/responses", "/v1/messages")):
        return path.startswith("/v1/messages")
    return "anthropic-version" in headers or "x-api-key" in headers or _is_claude(headers)


def _is_claude(headers: Mapping[str, str]) -> bool:
    return headers.get("user-agent", "").lower().startswith(("claude", "anthropic"))


def forwarded(
    headers: Iterable[tuple[bytes, bytes]],
    *,
    readable: bool = False,
    betas: Sequence[str] = (),
    is_plain: bool = False,
) -> Headers:
    """Return the client's headers to forward: all but those of the connection and our own.

    `readable` asks the provider for an uncompressed answer. `betas` are added to `anthropic-beta`. `is_plain`: the body is sent
    uncompressed although the client's was compressed.
    """
    dropped = _HOP_BY_HOP | _NOT_FORWARDED | ({b"content-encoding"} if is_plain else set())
    kept = [(name, value) for name, value in headers if name.lower() not in dropped]
    if betas:
        named = [value.decode("latin-1") for name, value in kept if name.lower() == _BETAS]
        together = dict.fromkeys(
            each.strip() for each in (*",".join(named).split(","), *betas) if each.strip()
        )
        kept = [pair for pair in kept if pair[0].lower() != _BETAS]
        kept.append((_BETAS, ",".join(together).encode("latin-1")))
    if not readable:
        return kept
    return [
        *(pair for pair in kept if pair[0].lower() != b"accept-encoding"),
        (b"accept-encoding", b"identity"),
    ]


def returned(response: aiohttp.ClientResponse) -> Headers:
    """Return the provider's headers for the client; a response that has no body by definition loses its content length."""
    kept = [(name.lower(), value) for name, value in response.raw_headers if name.lower() not in _HOP_BY_HOP]
    if response.status in _BODILESS:
        return [pair for pair in kept if pair[0] != b"content-length"]
    return kept


class Refused(Exception):
    """The gateway refuses a request; `message` is for its client."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after

    def body(self, *, anthropic: bool) -> bytes:
        """Return the error in the form of the provider's API."""
        anthropic_type, openai_type = _ERROR_TYPES.get(self.status, _ERROR_TYPES[500])
        if anthropic:
            return msgspec.json.encode(
                {"type": "error", "error": {"type": anthropic_type, "message": self.message}}
            )
        return msgspec.json.encode(
            {"error": {"message": self.message, "type": openai_type, "param": None, "code": None}}
        )

    def headers(self, body: bytes) -> Headers:
        """Return the headers of the answer."""
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-lowwater", b"refused"),
        ]
        if self.retry_after is not None:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        return headers
