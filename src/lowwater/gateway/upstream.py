"""The providers behind the gateway: where a request goes, with which headers, and what is said when it cannot go on."""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from yarl import URL

from lowwater.gateway.options import Options
from lowwater.gateway.tenants import ACCESS

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
_OURS = frozenset({b"host", b"content-length", b"expect", ACCESS.encode()})


_BETAS = b"anthropic-beta"
_LONGEST = 256 * 1024
"""Bytes of one of a provider's headers."""
_BODILESS = frozenset({204, 304})


class Upstreams:
    """The two providers, and one pool of connections to them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make ready to send."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._options.connect_seconds)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_LONGEST,
            max_field_size=_LONGEST,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.close()

    def base_url(self, path: str, headers: Mapping[str, str]) -> str:
        """Return the provider that a request is for: what only clients of one of them send decides."""
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
            # Encoded by the client already: nothing in it is written otherwise.
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
    """Return the proxy that the environment names for a provider (`HTTPS_PROXY`, `NO_PROXY`); None if it names none.

    Nothing else of the environment is read: a password in a .netrc would take the place of the client's key.
    """
    parts = urlsplit(base_url)
    named = getproxies().get(parts.scheme)
    return named if named and not proxy_bypass(parts.hostname or "") else None


def url_of(base_url: str, target: str, *, named_by_base: bool = False) -> str:
    """Return the URL of a path at a provider, whose URL may or may not end with the version that paths begin with.

    `named_by_base`: the provider's URL is one that OpenAI's clients take, whose path stands for the version (`/api/v4`).
    """
    base = base_url.rstrip("/")
    stands_for_version = named_by_base and bool(urlsplit(base).path) and not target.startswith("/v1/messages")
    if target.startswith("/v1/") and (stands_for_version or base.endswith("/v1")):
        return base + target.removeprefix("/v1")
    return base + target


def is_anthropic(path: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is for an Anthropic-speaking provider; where the path does not tell, its headers do."""
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
    """Return a client's headers as they go on: all but those of the connection.

    `readable` asks for an answer in plain bytes; `is_plain` says that the body is not compressed, whatever the client's was.
    """
    dropped = _HOP_BY_HOP | _OURS | ({b"content-encoding"} if is_plain else set())
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
    """Return a provider's headers as the client gets them; a length that only tells of what is not sent goes no further."""
    kept = [(name.lower(), value) for name, value in response.raw_headers if name.lower() not in _HOP_BY_HOP]
    if response.status in _BODILESS:
        return [pair for pair in kept if pair[0] != b"content-length"]
    return kept


_TYPES = {
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


class Refused(Exception):
    """The gateway cannot go on with a request; `said` is for its client."""

    def __init__(self, status: int, said: str, *, retry_after: int | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.retry_after = retry_after

    def body(self, *, anthropic: bool) -> bytes:
        """Return it as the provider would have put it."""
        theirs, ours = _TYPES.get(self.status, _TYPES[500])
        if anthropic:
            return msgspec.json.encode({"type": "error", "error": {"type": theirs, "message": self.said}})
        return msgspec.json.encode(
            {"error": {"message": self.said, "type": ours, "param": None, "code": None}}
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
