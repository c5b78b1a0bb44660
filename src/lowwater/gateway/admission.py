"""Who may come in: the gateway's own keys, a credential where one is required, and no more at once than it can bear."""

from collections.abc import Mapping

from lowwater.gateway.options import Options
from lowwater.gateway.refusals import Refused
from lowwater.gateway.tenants import ACCESS, credential_of, is_admitted

_OWN_KEY = "this gateway wants one of its own keys in the header x-lowwater-key"


def refuse_unless_admitted(headers: Mapping[str, str], options: Options, *, under_way: int) -> None:
    """Raise Refused for a request that goes no further."""
    if not is_admitted(headers, options.access_keys):
        raise Refused(401, _OWN_KEY)
    if options.require_key and not credential_of(headers):
        raise Refused(401, "this gateway passes on only requests that carry an API key or a token")
    if under_way > options.most_requests:
        raise Refused(503, "too many requests are under way: try again in a moment", retry_after=1)


def refuse_unless_operator(headers: Mapping[str, str], options: Options) -> None:
    """Raise Refused for somebody who asks for figures without one of the gateway's own keys, if it has any.

    It may come as a token, which is what scrapers send, and never is a provider's: nothing goes on from here.
    """
    brought = {ACCESS: headers.get(ACCESS) or credential_of(headers)}
    if not is_admitted(brought, options.access_keys):
        raise Refused(401, f"{_OWN_KEY}, or as a bearer token")
