"""Secrets by where they stand: on command lines, in cookies, and in the files of curl, PostgreSQL, Docker and npm."""

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import partial

from lowwater.values.secrets.found import Found
from lowwater.values.secrets.strength import is_blank, is_chosen, is_mixed, is_random, is_worded

_GAP = r"""(?:[\s,"']|\\+["'n])"""
"""What stands between two words: on a command line, in a list of arguments, in a string."""
_VALUE = r"""[^\s"'`\\,;|&<>]"""
_SECRET = rf"(?P<secret>{_VALUE}{{4,128}}+)"
_CLUSTER = r"-(?=[A-Za-z]{0,7}b)(?![A-Za-z]{0,7}n)[A-Za-z]{1,8}+"
"""Options of htpasswd that take the password from the command line."""
_PRINTING = r"-(?=[A-Za-z]{0,7}b)(?=[A-Za-z]{0,7}n)[A-Za-z]{1,8}+"
"""The same without a file."""
_FLAG = re.compile(
    rf"""(?<=[\s"'])(?:-[A-Za-z]{{0,6}}u|--(?:proxy-)?user)(?:{_GAP}|=){{0,4}}+(?P<user>[^\s"'`\\:@/=]{{1,64}}+):(?P<secret>[^\s"'`\\]{{3,128}}+)"""
)
_MYSQL = re.compile(rf"""(?<=[\s"'])-p["']?(?P<secret>{_VALUE}{{4,128}}+)""")
_OPTIONS = (
    ("sshpass", re.compile(rf"sshpass{_GAP}{{1,4}}+-p{_GAP}{{0,4}}+(?P<secret>{_VALUE}{{3,128}}+)")),
    (
        "redis-cli",
        re.compile(
            rf"redis-cli(?:{_GAP}{{1,4}}+(?!-a){_VALUE}{{1,64}}+){{0,8}}+{_GAP}{{1,4}}+-a{_GAP}{{1,4}}+(?P<secret>{_VALUE}{{4,128}}+)"
        ),
    ),
    (
        "machine",
        re.compile(
            rf"machine(?:\s|\\+[nt]){{1,8}}+{_VALUE}{{1,128}}+(?:\s|\\+[nt]){{1,8}}+login(?:\s|\\+[nt]){{1,8}}+{_VALUE}{{1,128}}+"
            rf"(?:\s|\\+[nt]){{1,8}}+password(?:\s|\\+[nt]){{1,8}}+(?P<secret>{_VALUE}{{3,128}}+)"
        ),
    ),
)
_THOUGHT_OF = (
    (
        "htpasswd",
        re.compile(
            rf"htpasswd{_GAP}{{1,4}}+{_CLUSTER}(?:{_GAP}{{1,4}}+{_VALUE}{{1,128}}+){{2}}{_GAP}{{1,4}}+{_SECRET}"
        ),
    ),
    (
        "htpasswd",
        re.compile(
            rf"htpasswd{_GAP}{{1,4}}+{_PRINTING}{_GAP}{{1,4}}+{_VALUE}{{1,128}}+{_GAP}{{1,4}}+{_SECRET}"
        ),
    ),
    (
        "zip",
        re.compile(
            rf"(?<![\w.-])(?:un)?zip(?:{_GAP}{{1,4}}+(?!-P){_VALUE}{{1,64}}+){{0,8}}+{_GAP}{{1,4}}+-P{_GAP}{{0,4}}+{_SECRET}"
        ),
    ),
    (
        "openssl",
        re.compile(
            rf"openssl(?:{_GAP}{{1,4}}+(?!-k{_GAP}|-pass){_VALUE}{{1,64}}+){{1,16}}+{_GAP}{{1,4}}+"
            rf"(?:-k{_GAP}|-pass(?:in|out)?{_GAP}{{1,4}}+pass:){_SECRET}"
        ),
    ),
)
"""Passwords on the command lines of programs whose manuals show words in their place."""
_WRITTEN = (
    (
        "client-key-data",
        "private key",
        re.compile(
            r"""client-key-data(?:\\*["']){0,2}:[ ]{0,2}(?:\\*["'])?(?P<secret>[A-Za-z0-9+/]{16,}+={0,2})"""
        ),
    ),
    (
        "otpauth://",
        "secret",
        re.compile(
            r"""otpauth://(?:(?!secret=)[^\s"'`<>\\]){0,256}+secret=(?P<secret>[A-Za-z2-7]{8,128}+)"""
        ),
    ),
    ("-Signature=", "signature", re.compile(r"X-(?:Amz|Goog)-Signature=(?P<secret>[0-9a-f]{64,1024}+)")),
)
_PGPASS = re.compile(
    r"""(?<![\w.:*/-])(?:[A-Za-z0-9.-]{1,128}+|\*):(?:5432|5433|6432|6543|\*):(?:[\w.-]{1,64}+|\*):(?:[\w.-]{1,64}+|\*):(?P<secret>[^\s:"'`\\]{4,128}+)(?![:\w])"""
)
_COOKIE = re.compile(
    r"""(?:(?<![a-z_])(?:set-)?cookies?(?:\\*["'\]]){0,3}[ \t]{0,4}[:=][ \t]{0,4}|--cookie[ =]|(?<=[\s"'])-b[ ])(?:\\*["'])?"""
)
_PAIR = re.compile(r"""(?P<name>[\w.%-]{1,64}+)=(?P<secret>[^\s;"'`\\,<>]{1,2048}+)(?:;[ ]{0,2})?""")
_SESSIONS = re.compile(r"sess|sid\b|auth|token|csrf|xsrf|jwt|remember|login|secret|key", re.IGNORECASE)
_AUTH = re.compile(
    r"""_?auth(?:\\*["']){0,2}[ ]{0,2}[:=][ ]{0,2}(?:\\*["'])?(?P<secret>[A-Za-z0-9+/]{8,2048}+={0,2})"""
)
_OWN_HEADER = re.compile(
    rf"""x-lowwater-key(?:\\*["'\]]){{0,3}}[ \t]{{0,4}}[:=,][ \t]{{0,4}}(?:\\*["'])?(?P<secret>{_VALUE}{{3,256}}+)"""
)
_OWN_KEYS = re.compile(
    r"""lowwater_gateway_keys(?:\\*["'\]]){0,3}[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'])?(?P<secret>[^\s"'`\\;|&<>]{3,1024}+)"""
)
_DEFINED = re.compile(
    r"""define\(\s{0,4}["']\w{0,40}(?:PASSWORD|SECRET|SALT|TOKEN|API_KEY|AUTH_KEY)\w{0,20}["']\s{0,4},\s{0,4}["'](?P<secret>[^"'\n]{6,256}+)["']"""
)
_NEAR = 400
"""Characters of a command before its option."""
_NUMBERS = re.compile(r"[0-9:./-]+")


def commands_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield passwords that command lines and the files of well-known programs hold."""
    if "curl" in lowered:
        yield from _of_command(_FLAG, text, ("curl",))
    if "mysql" in lowered or "mariadb" in lowered:
        yield from _of_command(_MYSQL, text, ("mysql", "mariadb"))
    for word, pattern in _OPTIONS:
        if word in text:
            yield from _plain(pattern, text, "password")
    for word, pattern in _THOUGHT_OF:
        if word in text:
            yield from filter(partial(_is_thought_of, text), _plain(pattern, text, "password"))
    for word, kind, pattern in _WRITTEN:
        if word in text:
            yield from _plain(pattern, text, kind)
    if ":5432:" in text or ":*:*:" in text or ":5433:" in text or ":6432:" in text or ":6543:" in text:
        yield from _plain(_PGPASS, text, "password")
    if "define(" in text:
        yield from _plain(_DEFINED, text, "password")
    if "lowwater" in lowered:
        yield from _own(text, lowered)


def cookies_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield the values of cookies that identify somebody."""
    if "cookie" not in lowered and "curl" not in lowered:
        return
    for opened in _COOKIE.finditer(lowered):
        if opened[0].lstrip("\"'").startswith("-b") and not _follows(text, opened.start(), ("curl",)):
            continue
        at = opened.end()
        while pair := _PAIR.match(text, at):
            at = pair.end()
            if _identifies(pair["name"], pair["secret"]):
                yield Found(pair.start("secret"), pair.end("secret"), "cookie")


def encoded_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield what Docker and npm write under `auth`: a name and a password in base64."""
    if "auth" not in lowered:
        return
    for match in _AUTH.finditer(lowered):
        start, end = match.span("secret")
        if is_encoded_pair(text[start:end]):
            yield Found(start, end, "credentials")


def is_encoded_pair(value: str) -> bool:
    """Tell whether a value is a name and a password in base64, as `Basic` takes them."""
    try:
        told = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    name, colon, password = told.partition(":")
    return bool(name and colon and password) and told.isprintable()


def _of_command(pattern: re.Pattern[str], text: str, commands: tuple[str, ...]) -> Iterator[Found]:
    for match in pattern.finditer(text):
        if _follows(text, match.start(), commands) and _is_given(match["secret"]):
            yield Found(match.start("secret"), match.end("secret"), "password")


def _follows(text: str, at: int, commands: tuple[str, ...]) -> bool:
    """Tell whether one of these commands stands before an option, on its line or on lines that it continues."""
    before = text[max(0, at - _NEAR) : at]
    starts = max(before.rfind(command) for command in commands)
    return starts >= 0 and not re.search(r"(?<!\\)\n|[|;&]", before[starts:])


def _plain(pattern: re.Pattern[str], text: str, kind: str) -> Iterator[Found]:
    for match in pattern.finditer(text):
        if _is_given(match["secret"]):
            yield Found(match.start("secret"), match.end("secret"), kind)


def _is_thought_of(text: str, found: Found) -> bool:
    value = text[found.start : found.end]
    return is_chosen(value) or is_worded(value)


def _own(text: str, lowered: str) -> Iterator[Found]:
    for pattern in (_OWN_HEADER, _OWN_KEYS):
        for match in pattern.finditer(lowered):
            start, end = match.span("secret")
            if not is_blank(text[start:end]):
                yield Found(start, end, "gateway key")


def _is_given(value: str) -> bool:
    """Tell whether a value is written out, and is no number, address or variable."""
    return not is_blank(value) and _NUMBERS.fullmatch(value) is None


def _identifies(name: str, value: str) -> bool:
    if is_blank(value) or len(value) < 8:
        return False
    if _SESSIONS.search(name):
        return len(value) >= 16 or is_random(value) or is_mixed(value)
    return len(value) >= 16 and is_random(value)
