"""Whose request it is: a tenant is bound to the credential, and to nothing a client merely says."""

import hmac
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

NOBODY = "nobody"
"""The tenant of all requests without a credential."""
ACCESS = "x-lowwater-key"

_OPENAI_CLAIM = "https://api.openai.com/auth"


def tenant_of(headers: Mapping[str, str], *, secret: bytes, fixed: str = "") -> str:
    """Return the tenant of a request: the operator's name for all, or a keyed hash of who the credential says it is.

    A token that carries its account (a JSON Web Token) counts by that, so that a refreshed one is the same tenant. Nobody
    checks its signature here: a forged one reaches the provider, which refuses it, and nothing is answered from here.
    """
    if fixed:
        return fixed
    credential = credential_of(headers)
    if not credential:
        return NOBODY
    return blake2b(
        (_account_in(credential) or credential).encode(), key=secret[:64], digest_size=12
    ).hexdigest()


def credential_of(headers: Mapping[str, str]) -> str:
    """Return the key or token that a request carries, empty if it carries none."""
    bearer = headers.get("authorization", "")
    kind, _, token = bearer.partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "") or headers.get("api-key", "") or bearer.strip()


def is_admitted(headers: Mapping[str, str], access_keys: tuple[str, ...]) -> bool:
    """Return whether a request brings one of the gateway's own keys, if it asks for any."""
    brought = headers.get(ACCESS, "").encode()
    equal = [hmac.compare_digest(brought, key.encode()) for key in access_keys]
    return not access_keys or any(equal)


def _account_in(token: str) -> str:
    """Return who a JSON Web Token was issued to and by whom; empty if it is none or does not say."""
    pieces = token.split(".")
    if len(pieces) != 3:
        return ""
    try:
        padded = pieces[1] + "=" * (-len(pieces[1]) % 4)
        claims: dict[str, Any] = msgspec.json.decode(urlsafe_b64decode(padded), type=dict[str, Any])
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return ""
    account = _openai_account(claims) or claims.get("sub")
    if not isinstance(account, str) or not account:
        return ""
    return f"account\0{claims.get('iss', '')}\0{account}"


def _openai_account(claims: Mapping[str, Any]) -> str:
    own = claims.get(_OPENAI_CLAIM)
    account = own.get("chatgpt_account_id") if isinstance(own, dict) else None
    return account if isinstance(account, str) else ""
