"""Who may come in: the gateway's own keys, a credential where one is required, and no more at once than it can bear."""

from collections.abc import Mapping

from lowwater.gateway.options import Options
from lowwater.gateway.refusals import Refused
from lowwater.gateway.tenants import credential_of, is_admitted


def refuse_unless_admitted(headers: Mapping[str, str], options: Options, *, under_way: int) -> None:
    """Raise Refused for a request that goes no further."""
    if not is_admitted(headers, options.access_keys):
        raise Refused(401, "this gateway wants one of its own keys in the header x-lowwater-key")
    if options.require_key and not credential_of(headers):
        raise Refused(401, "this gateway passes on only requests that carry an API key or a token")
    if under_way > options.most_requests:
        raise Refused(503, "too many requests are under way: try again in a moment", retry_after=1)
