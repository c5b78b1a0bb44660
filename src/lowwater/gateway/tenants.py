"""The tenant of a request: derived from its credential, never from anything that a client merely claims."""

import hmac
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

NOBODY = "nobody"
"""The tenant of all requests without a credential."""
ACCESS = "x-lowwater-key"
CONSENT = "x-lowwater-summaries"
"""The header by which a client agrees that summaries are written on its API key; like the key, it is not forwarded."""
KEEP_WARM = "x-lowwater-idle"
"""The header (`on`) by which a client agrees that its API key is used in pauses to keep its prompt cached; not forwarded either."""
UNTOUCHED = "x-lowwater-untouched"
"""The header by which a client has one request sent as it is: `on`; it is not forwarded either."""

_TOKEN = re.compile(r"[A-Za-z0-9_.=-]+")
"""The characters of a single token; a header that came twice does not match."""
_SCHEMES = frozenset({"bearer", "basic", "digest", "token", "apikey", "key", "negotiate"})
"""Words that may precede a credential in `Authorization` and are no credential themselves."""
_SEPARATORS = re.compile(r"[\s,]+")
_UNSIGNED = frozenset({"", "none"})
_OPENAI_CLAIM = "https://api.openai.com/auth"


def tenant_of(
    headers: Mapping[str, str], *, secret: bytes, fixed: str = "", trusts_tokens: bool = False
) -> str:
    """Return the tenant of a request: the operator's name for all, or a keyed hash of the whole credential.

    The gateway does not verify signatures, and a self-hosted provider may not either. So the claims of a token are used only
    with `trusts_tokens`, which means that something in front of the gateway has verified it. A JSON Web Token then counts by its
    account, so that a refreshed one is the same tenant; an unsigned one never does. If there are several credentials, the gateway
    cannot know which one the provider uses: all of them together make the tenant.
    """
    if fixed:
        return fixed
    credentials = credentials_of(headers)
    if not credentials:
        return NOBODY
    identities = "\0\0".join((trusts_tokens and _account_in(each)) or each for each in credentials)
    return blake2b(identities.encode(), key=secret[:64], digest_size=12).hexdigest()


def credential_of(headers: Mapping[str, str]) -> str:
    """Return the key or token of a request; empty if it has none."""
    return next(iter(credentials_of(headers)), "")


def credentials_of(headers: Mapping[str, str]) -> list[str]:
    """Return all keys and tokens of a request, each once: many clients send one key in two headers."""
    found = (
        _authorization_in(headers.get("authorization", "")),
        headers.get("x-api-key", ""),
        headers.get("api-key", ""),
    )
    return list(dict.fromkeys(each.strip() for each in found if each.strip()))


def _authorization_in(header: str) -> str:
    """Return the credential in an `Authorization` header; empty if there is only a scheme."""
    if all(word.lower() in _SCHEMES for word in _SEPARATORS.split(header) if word):
        return ""
    kind, _, token = header.strip().partition(" ")
    return token if kind.lower() == "bearer" else header


def is_admitted(headers: Mapping[str, str], access_keys: tuple[str, ...]) -> bool:
    """Return whether a request has one of the gateway's own keys, if these are required."""
    given = headers.get(ACCESS, "").encode()
    equal = [hmac.compare_digest(given, key.encode()) for key in access_keys]
    return not access_keys or any(equal)


def _account_in(token: str) -> str:
    """Return the issuer, account and subject of a signed JSON Web Token; empty if it is none or has no such claims."""
    pieces = token.split(".")
    if len(pieces) != 3 or not _TOKEN.fullmatch(token):
        return ""
    try:
        head, claims = (_decode_claims(piece) for piece in pieces[:2])
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return ""
    if not pieces[2] or _text(head.get("alg")).lower() in _UNSIGNED:
        return ""
    # A workspace has many members, and a person may be in several workspaces: both together make the tenant.
    person, account = _text(claims.get("sub")), _openai_account(claims)
    if not person and not account:
        return ""
    return f"account\0{claims.get('iss', '')}\0{account}\0{person}"


def _decode_claims(piece: str) -> dict[str, Any]:
    return msgspec.json.decode(urlsafe_b64decode(piece + "=" * (-len(piece) % 4)), type=dict[str, Any])


def _openai_account(claims: Mapping[str, Any]) -> str:
    own = claims.get(_OPENAI_CLAIM)
    return _text(own.get("chatgpt_account_id")) if isinstance(own, dict) else ""


def _text(claim: object) -> str:
    return claim if isinstance(claim, str) else ""
