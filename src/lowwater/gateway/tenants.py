"""Whose request it is: a tenant is bound to the credential, and to nothing a client merely says."""

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

_ONE = re.compile(r"[A-Za-z0-9_.=-]+")
"""How one token is written; a header that came twice is no token."""
_SCHEMES = frozenset({"bearer", "basic", "digest", "token", "apikey", "key", "negotiate"})
"""Words before a credential in `Authorization`, which are none themselves."""
_BETWEEN = re.compile(r"[\s,]+")
_UNSIGNED = frozenset({"", "none"})
_OPENAI_CLAIM = "https://api.openai.com/auth"


def tenant_of(
    headers: Mapping[str, str], *, secret: bytes, fixed: str = "", trusts_tokens: bool = False
) -> str:
    """Return the tenant of a request: the operator's name for all, or a keyed hash of the whole credential.

    Nobody checks signatures here, and a provider of one's own may check nothing at all: what a token claims is believed only
    where `trusts_tokens` says that somebody in front of the gateway has checked it. Then a JSON Web Token counts by its account,
    so that a refreshed one is the same tenant; one that bears no signature never does. Of several credentials nobody here knows
    which the provider goes by, so that all of them together are one tenant.
    """
    if fixed:
        return fixed
    credentials = _credentials(headers)
    if not credentials:
        return NOBODY
    told = "\0\0".join((trusts_tokens and _account_in(each)) or each for each in credentials)
    return blake2b(told.encode(), key=secret[:64], digest_size=12).hexdigest()


def credential_of(headers: Mapping[str, str]) -> str:
    """Return the key or token that a request carries, empty if it carries none."""
    return next(iter(_credentials(headers)), "")


def _credentials(headers: Mapping[str, str]) -> list[str]:
    """Return all keys and tokens of a request, each once: many clients send one key under two names."""
    found = (
        _authorized(headers.get("authorization", "")),
        headers.get("x-api-key", ""),
        headers.get("api-key", ""),
    )
    return list(dict.fromkeys(each.strip() for each in found if each.strip()))


def _authorized(header: str) -> str:
    """Return the credential in an `Authorization` header; a scheme with nothing behind it brings none."""
    if all(word.lower() in _SCHEMES for word in _BETWEEN.split(header) if word):
        return ""
    kind, _, token = header.strip().partition(" ")
    return token if kind.lower() == "bearer" else header


def is_admitted(headers: Mapping[str, str], access_keys: tuple[str, ...]) -> bool:
    """Return whether a request brings one of the gateway's own keys, if it asks for any."""
    brought = headers.get(ACCESS, "").encode()
    equal = [hmac.compare_digest(brought, key.encode()) for key in access_keys]
    return not access_keys or any(equal)


def _account_in(token: str) -> str:
    """Return who a signed JSON Web Token was issued to and by whom; empty if it is none or does not say."""
    pieces = token.split(".")
    if len(pieces) != 3 or not _ONE.fullmatch(token):
        return ""
    try:
        head, claims = (_decoded(piece) for piece in pieces[:2])
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return ""
    if not pieces[2] or _text(head.get("alg")).lower() in _UNSIGNED:
        return ""
    # A workspace has many members, and a person may be in several: only both together are one tenant.
    person, account = _text(claims.get("sub")), _openai_account(claims)
    if not person and not account:
        return ""
    return f"account\0{claims.get('iss', '')}\0{account}\0{person}"


def _decoded(piece: str) -> dict[str, Any]:
    return msgspec.json.decode(urlsafe_b64decode(piece + "=" * (-len(piece) % 4)), type=dict[str, Any])


def _openai_account(claims: Mapping[str, Any]) -> str:
    own = claims.get(_OPENAI_CLAIM)
    return _text(own.get("chatgpt_account_id")) if isinstance(own, dict) else ""


def _text(claim: object) -> str:
    return claim if isinstance(claim, str) else ""
