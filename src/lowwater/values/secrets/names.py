"""Names that announce a secret: `password`, `api_key`, `client_secret`, `accessToken`; not `max_tokens` or `token_count`."""

import re

from msgspec import Struct


class Stem(Struct, frozen=True, kw_only=True):
    """A lower-case word in such a name, and what may follow it there."""

    kind: str
    word: str
    tail: str


_KEY = r"(?:[_-]?(?:access[_-]?)?key)?"
_COUNTED = r"(?:[_-]?[0-9]{1,2})?"
STEMS = (
    Stem(kind="password", word="passw", tail=rf"(?:or)?d{_COUNTED}"),
    Stem(kind="password", word="passphrase", tail=""),
    Stem(kind="password", word="pwd", tail=_COUNTED),
    Stem(kind="password", word="pass", tail=_COUNTED),
    Stem(kind="secret", word="secret", tail=rf"{_KEY}(?:[_-]?(?:token|value))?{_COUNTED}"),
    Stem(kind="token", word="token", tail=rf"(?:[_-]?(?:secret|value))?{_COUNTED}"),
    Stem(kind="key", word="key", tail=_COUNTED),
)
_KEY_HEAD = re.compile(
    r"(?:api|access|private|auth|account|signing|encrypt(?:ion)?|secret|master|shared|storage|service|deploy|license"
    r"|app|consumer|admin|subscription|host|function)[ _-]?\Z"
)
_PASS_HEAD = re.compile(
    r"(?:\A|[^a-z])(?:db|database|ssh|become|sudo|root|admin|user|login|mysql|mariadb|pg|postgres|postgresql|mongo|mongodb|redis"
    r"|rabbitmq|amqp|kafka|oracle|smtp|imap|mail|email|ftp|sftp|ldap|bind|vault|proxy|http|basic|auth|keystore|truststore|registry"
    r"|docker|jenkins|git|wifi|vpn|vnc|rdp)[_-]\Z"
)
"""Before `pass`, which by itself is a run over something."""
_NO_TOKEN_HEAD = re.compile(
    r"(?:page|next|continuation|cursor|sync|eos|bos|pad|unk|cls|sep|mask|stop|special|start|end|per|cache|prompt|public[_-]?key)[ _-]?\Z"
)
_HEAD = re.compile(r"[\w.-]{0,40}\Z")
_ENDS = tuple((stem, re.compile(f"{stem.word}{stem.tail}$")) for stem in STEMS)


def head_before(text: str, at: int) -> str:
    """Return how the name begins in which a stem stands at `at`."""
    found = _HEAD.search(text[max(0, at - 40) : at])
    return found[0] if found else ""


def announces(stem: Stem, head: str) -> bool:
    """Tell whether a stem after this lower-case head announces a secret; there are keys and tokens of other kinds."""
    if stem.word == "key":
        return _KEY_HEAD.search(head) is not None
    if stem.word == "pass":
        return _PASS_HEAD.search(head) is not None
    return stem.word != "token" or _NO_TOKEN_HEAD.search(head) is None


def kind_announced(name: str) -> str:
    """Return the kind of secret that stands under this name, or nothing."""
    lowered = name.lower()
    for stem, ends in _ENDS:
        found = ends.search(lowered)
        if found and announces(stem, lowered[: found.start()]):
            return stem.kind
    return ""
