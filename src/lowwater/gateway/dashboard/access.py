"""Who may see what in the dashboard: a token opens the figures, the key of a tenant its contents.

The token is in the part of the URL behind `#`, which browsers send to nobody. The page posts it once and gets two things: a cookie, which
scripts cannot read, and a key, which it stores and sends in a header. The cookie alone opens nothing, because browsers also send it to
programs at other ports of the same host; what a page has stored, no page from another port can read.
"""

import hmac
import secrets
import time
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.stored import About
from lowwater.errors import BadInput
from lowwater.gateway.options import GatewayOptions, new_capability, short_tenant, source_of
from lowwater.gateway.tenants import ACCESS, is_admitted, tenant_of

HEADER = "x-lowwater-dashboard"
"""The header in which the page sends its key; a form on another site cannot set it."""
_SECONDS = 12 * 3600.0
"""How long a cookie holds."""
_MOST_GRANTS = 200
"""Cookies that hold at once; the oldest goes first."""
_MOST_GUESSES, _GUESS_SECONDS = 10, 60.0
"""How many tenants' keys may be tried in how many seconds, by all holders of cookies together."""
SHORTEST_TOKEN = 16
"""The fewest characters of a token: too many to be guessed, so wrong tokens need not lock anybody out."""


def cookie_name(port: int | None) -> str:
    """Return the name of the cookie of the dashboard at a port, as its browser sees it.

    Browsers send cookies to all ports of a host: under one name, two dashboards would take each other's cookie away.
    """
    return f"lowwater_dashboard_{port or 'default'}"


class Grant(Struct, frozen=True, kw_only=True):
    """What the holder of one cookie may see."""

    until: float
    page_key: str = ""
    """What the page has to send along with the cookie."""
    is_owner: bool
    """Whether all contents may be seen."""
    tenants: frozenset[str] = frozenset()

    def sees(self, about: About) -> bool:
        """Return whether the contents of a session may be seen, and the session changed."""
        return self.is_owner or any(
            about.source == source or about.source.startswith(f"{source}:")
            for tenant in self.tenants
            for source in (source_of(tenant), source_of(tenant, shadow=True))
        )


class DashboardAccess:
    """The dashboard's token, and the cookies that were given for it; all of it is gone with the process."""

    def __init__(
        self, *, is_owner: bool, token: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        if token and len(token) < SHORTEST_TOKEN:
            raise BadInput(f"a token of the dashboard needs at least {SHORTEST_TOKEN} characters")
        self.token = token or new_capability()
        self._is_owner = is_owner
        self._clock = clock
        self._grants: dict[str, Grant] = {}
        self._guesses: list[float] = []

    def admit(self, token: str) -> str | None:
        """Return a new cookie for the right token; None for a wrong one."""
        if not _are_equal(token, self.token):
            return None
        cookie, page_key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        if len(self._grants) >= _MOST_GRANTS:
            self._grants.pop(next(iter(self._grants)))
        until = self._clock() + _SECONDS
        self._grants[cookie] = Grant(until=until, page_key=page_key, is_owner=self._is_owner)
        return cookie

    def grant_of(self, cookie: str) -> Grant | None:
        """Return what a cookie opens; None if it opens nothing, or nothing any more."""
        found = self._grants.get(cookie)
        if found is not None and found.until < self._clock():
            del self._grants[cookie]
            return None
        return found

    def opened(self, cookie: str, page_key: str) -> Grant | None:
        """Return what a cookie opens together with the key that was issued with it; None if either is wrong."""
        found = self.grant_of(cookie)
        return found if found is not None and _are_equal(page_key, found.page_key) else None

    def unlock(self, cookie: str, key: str, options: GatewayOptions, secret: bytes) -> bool:
        """Let a cookie see the contents of the tenant that a key belongs to; return whether the key can be one.

        Whoever has a tenant's key can read its sessions by recall anyway. Where the operator gives all clients one tenant, a key of
        the gateway's own is asked for.
        """
        grant = self.grant_of(cookie)
        if grant is None or not key.strip() or self._is_throttled():
            return False
        # A source names a tenant by the beginning of its hash, so that every key counts as a guess.
        self._guesses.append(self._clock())
        if options.tenant:
            if not options.access_keys or not is_admitted({ACCESS: key}, options.access_keys):
                return False
            tenant = options.tenant
        else:
            headers: Mapping[str, str] = {"x-api-key": key.strip()}
            tenant = short_tenant(tenant_of(headers, secret=secret, trusts_tokens=options.trusts_tokens))
        self._grants[cookie] = replace(grant, tenants=grant.tenants | {tenant})
        return True

    def lock(self, cookie: str) -> None:
        """Forget a cookie."""
        self._grants.pop(cookie, None)

    def _is_throttled(self) -> bool:
        since = self._clock() - _GUESS_SECONDS
        self._guesses = [at for at in self._guesses if at > since]
        return len(self._guesses) >= _MOST_GUESSES


def _are_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())
