"""Keys that providers give out: each kind is known by how it begins.

Families with the same first letter are looked for together, at the speed of a plain search for that letter. A pattern takes
whatever may belong to the key and never goes back, so that no text makes it slow.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lowwater.values.secrets.found import Found
from lowwater.values.secrets.strength import is_random


class Family(Struct, frozen=True, kw_only=True):
    """Keys that begin alike; `drawn` ones must also look random, for words may begin so too."""

    kind: str
    begins: str
    pattern: str
    drawn: bool = False


def _family(kind: str, begins: str, rest: str, *, drawn: bool = False) -> Family:
    """Return the family of keys that stand by themselves: nothing wordy before them, but for an escaped line end."""
    literal = re.escape(begins)
    alone = rf"(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal}))"
    return Family(kind=kind, begins=begins, pattern=literal + alone + rest, drawn=drawn)


_ANY = r"[A-Za-z0-9_-]"
FAMILIES = (
    _family("Anthropic key", "sk-ant-", rf"{_ANY}{{16,}}+"),
    _family("API key", "sk-", rf"(?!ant-){_ANY}{{20,}}+", drawn=True),
    _family("Stripe key", "sk_", r"(?:live|test)_[A-Za-z0-9]{16,}+"),
    _family("Stripe key", "rk_", r"(?:live|test)_[A-Za-z0-9]{16,}+"),
    _family("webhook secret", "whsec_", r"[A-Za-z0-9+/=]{24,}+", drawn=True),
    _family("AWS key id", "AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _family("AWS key id", "ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _family("GitHub token", "gh", r"[pousr]_[A-Za-z0-9]{36,}+"),
    _family("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,}+"),
    _family("GitLab token", "gl", rf"(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-{_ANY}{{20,}}+", drawn=True),
    _family("Slack token", "xox", r"[abceoprs]-[A-Za-z0-9-]{10,}+", drawn=True),
    _family("Slack token", "xapp-", r"[A-Za-z0-9-]{20,}+", drawn=True),
    _family("Slack webhook", "hooks.slack.com/", r"(?:services|workflows)/[A-Za-z0-9_/-]{20,}+"),
    _family("Google key", "AIza", rf"{_ANY}{{35,}}+"),
    _family("Google token", "ya29.", rf"{_ANY}{{20,}}+"),
    _family("Google secret", "GOCSPX-", rf"{_ANY}{{20,}}+"),
    _family("npm token", "npm_", r"[A-Za-z0-9]{36,}+"),
    _family("PyPI token", "pypi-", rf"{_ANY}{{50,}}+"),
    _family("Hugging Face token", "hf_", r"[A-Za-z0-9]{30,}+"),
    _family("Groq key", "gsk_", r"[A-Za-z0-9]{40,}+"),
    _family("xAI key", "xai-", r"[A-Za-z0-9]{60,}+"),
    _family("NVIDIA key", "nvapi-", rf"{_ANY}{{40,}}+"),
    _family("SendGrid key", "SG.", rf"{_ANY}{{16,64}}+\.{_ANY}{{16,}}+"),
    _family("Databricks token", "dapi", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _family("DigitalOcean token", "do", r"[opr]_v1_[0-9a-f]{64}"),
    _family("Docker token", "dckr_", rf"[a-z]{{2,4}}_{_ANY}{{20,}}+"),
    _family("Vault token", "hvs.", rf"{_ANY}{{24,}}+"),
    _family("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}+"),
    _family("JWT", "eyJ", rf"(?<!{_ANY}eyJ){_ANY}{{8,}}+\.eyJ{_ANY}{{8,}}+\.{_ANY}*+"),
    _family("bot token", "AA", rf"(?<=[0-9]:AA){_ANY}{{33}}(?!{_ANY})"),
)


class Initial(Struct, frozen=True, kw_only=True):
    """All families that begin with one letter; the pattern's groups are they, in order."""

    families: tuple[Family, ...]
    pattern: re.Pattern[str]


def _initial(letter: str) -> Initial:
    families = tuple(family for family in FAMILIES if family.begins[0] == letter)
    shared = _shared([family.begins for family in families])
    rest = "|".join(f"({family.pattern.removeprefix(shared)})" for family in families)
    return Initial(families=families, pattern=re.compile(f"{shared}(?:{rest})"))


def _shared(begins: Sequence[str]) -> str:
    """Return the letters that all of them begin with: the more there are, the faster the search."""
    shortest = min(begins, key=len)
    same = (shortest[:end] for end in range(len(shortest), 0, -1) if shortest[:end].isalnum())
    return next(start for start in same if all(each.startswith(start) for each in begins))


_INITIALS = tuple(map(_initial, dict.fromkeys(family.begins[0] for family in FAMILIES)))


def keys_in(text: str) -> Iterator[Found]:
    """Yield the keys in a text, by their first letters."""
    for initial in _INITIALS:
        first = initial.pattern.search(text)
        if first is None:
            continue
        for match in initial.pattern.finditer(text, first.start()):
            assert match.lastindex is not None, "every alternative is a group"
            family = initial.families[match.lastindex - 1]
            if not family.drawn or is_random(match[0][len(family.begins) :]):
                yield Found(match.start(), match.end(), family.kind)
