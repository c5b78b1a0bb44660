"""Secrets in the headers and addresses of requests: `Authorization`, `user:password@host`, signatures of URLs."""

import re
from collections.abc import Iterator

from lowwater.values.secrets.commands import is_encoded_pair
from lowwater.values.secrets.found import Found
from lowwater.values.secrets.strength import is_blank, is_chosen, is_encoded, is_mixed, is_random

_BEARER = re.compile(r"bearer[ ]{1,3}")
_AUTHORIZATION = re.compile(
    r"""authorization(?<![a-z]authorization)(?:\\*["'\]]){0,3}[ \t]{0,4}[:=,][ \t]{0,4}(?:\\*["'`])?(?P<scheme>basic|token|apikey|key)?[ ]{0,3}"""
)
_KEY_HEADER = re.compile(
    r"""-(?:key|token)(?:(?<=api-key)|(?<=x-auth-token)|(?<=access-token)|(?<=private-token)|(?<=vault-token)|(?<=gitlab-token))"""
    r"""(?:\\*["'\]]){0,3}[ \t]{0,4}:[ \t]{0,4}(?:\\*["'`])?"""
)
_CREDENTIAL = re.compile(r"[A-Za-z0-9._~+/=-]{8,}+")
_SIGNATURE = re.compile(r"sig=(?<=[?&;]sig=)(?P<secret>[A-Za-z0-9%+/=_-]{30,}+)")
_USER = re.compile(
    r"""://(?P<user>[^\s/@:"'<>`\\]{0,128}+)(?::(?P<secret>[^\s/@"'<>`\\]{1,256}+))?@(?!sha256)(?=[\w\[$%{])"""
)
_CAPITALS = re.compile(r"[A-Z_]+")
"""How documents write what the reader is to fill in."""
_SHORTEST = 16


def headers_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield the credentials of `Authorization` headers and whatever follows `Bearer`."""
    for match in _BEARER.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and not is_blank(value[0]) and _bears(value[0]):
            yield Found(value.start(), value.end(), "bearer token")
    for match in _AUTHORIZATION.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and not is_blank(value[0]) and _authorizes(match["scheme"] or "", value[0]):
            yield Found(value.start(), value.end(), "credentials")


def key_headers_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield what stands in headers that hold nothing but keys, whatever it looks like."""
    for match in _KEY_HEADER.finditer(lowered):
        value = _CREDENTIAL.match(text, match.end())
        if value and len(value[0]) >= _SHORTEST and not is_blank(value[0]) and is_chosen(value[0]):
            yield Found(value.start(), value.end(), "key")


def addresses_in(text: str) -> Iterator[Found]:
    """Yield the passwords, tokens and signatures in URLs."""
    if "://" not in text:
        return
    for match in _USER.finditer(text):
        name = "secret" if match["secret"] else "user"
        value = match[name]
        if (
            not is_blank(value)
            and not _CAPITALS.fullmatch(value)
            and (name == "secret" or (len(value) >= _SHORTEST and is_random(value)))
        ):
            yield Found(match.start(name), match.end(name), "password" if name == "secret" else "token")
    for match in _SIGNATURE.finditer(text):
        if is_random(match["secret"]):
            yield Found(match.start("secret"), match.end("secret"), "signature")


def _bears(value: str) -> bool:
    return len(value) >= _SHORTEST and (is_mixed(value) or is_random(value))


def _authorizes(scheme: str, value: str) -> bool:
    if scheme == "basic":
        return is_encoded(value) or is_encoded_pair(value)
    return _bears(value)
