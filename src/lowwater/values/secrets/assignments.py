"""Secrets by what they are assigned to: in code, shells, environment files, YAML, JSON, URLs, flags and XML.

Names are looked for in the lower-cased text, whose positions are those of the text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from lowwater.values.secrets.found import Found
from lowwater.values.secrets.names import STEMS, announces, head_before
from lowwater.values.secrets.strength import is_blank, is_chosen, is_encoded, is_phrase, is_random, is_worded

_LONGEST = 1_024
"""Characters within which a quoted value ends; longer ones are documents."""
_SHORTEST = 6
_DRAWN = 8
"""Letters of a drawn password that has no digit."""
_SEPARATED = (
    r"""(?:\\*["'`\]]){0,3}[ \t]{0,8}"""
    r"""(?::[ ]{0,2}(?:str|string)(?:[ ]?\|[ ]?none)?[ ]?=(?!=)|:=|=>|={1,3}|:(?![:/])|>|(?<![ \t])(?=[ ]))[ \t]{0,4}"""
)
_NAMED = tuple((stem, re.compile(stem.word + stem.tail + _SEPARATED)) for stem in STEMS)
_OPENS = re.compile(r"""[bBrRuUfF]?(\\*["'`])""")
_BARE = re.compile(r"""[^\s"'`,;&<>(){}\[\]|\\]*[^\s"'`,;&<>(){}\[\]|\\.:!?…]""")
_ALONE = re.compile(r"(?:\A|\n|\\n)[ \t]*(?:- |export |set |ENV |ARG )?[ \t]*\Z")
_CALLS = frozenset("([{")
"""What follows a name that is called or indexed."""
_PLAIN_WORD = re.compile(r"[a-z]{8,}")


class _Place(NamedTuple):
    """Where something is assigned: the name begins at `starts`, the value at `at`."""

    text: str
    kind: str
    head: str
    """How the name begins, before the word that tells its kind."""
    starts: int
    said: str
    """The rest of the name and the separator, in lower case."""
    at: int

    @property
    def is_typed(self) -> bool:
        """Whether the name is one of a type, as in `AWS::IAM::AccessKey`, under which no value stands."""
        return self.text[max(0, self.starts - 2) : self.starts] == "::"

    @property
    def is_flag(self) -> bool:
        """Whether the name is an option of a command."""
        return self.head.startswith("--")

    @property
    def is_apart(self) -> bool:
        """Whether only a space separates name and value."""
        return self.said.rstrip()[-1:].isalnum()

    @property
    def is_tight(self) -> bool:
        """Whether `=` alone separates them."""
        return self.said.endswith("=") and not self.said.endswith(("==", " ="))

    @property
    def is_tag(self) -> bool:
        """Whether the name is an XML tag."""
        return self.said.endswith(">") and not self.said.endswith("=>")

    @property
    def name(self) -> str:
        """The whole name, as it is written."""
        return self.text[self.starts : self.at].rstrip(" =")


def assignments_in(text: str, lowered: str) -> Iterator[Found]:
    """Yield the values that are assigned to names which announce a secret, if they look like one."""
    for stem, pattern in _NAMED:
        read = 0
        for match in pattern.finditer(lowered):
            # A name inside a bare value is part of it; reading on from each would take the square of its length.
            if match.start() < read:
                continue
            head = head_before(text, match.start())
            if not announces(stem, head.lower()):
                continue
            place = _Place(text, stem.kind, head, match.start() - len(head), match[0], match.end())
            value = None if place.is_typed or (place.is_apart and not place.is_flag) else _value_at(place)
            if value is None:
                continue
            read = read if value.quoted else value.end
            if _is_secret(place, value):
                yield Found(value.start, value.end, stem.kind)


def is_kept_secret(kind: str, value: str) -> bool:
    """Tell whether a quoted value that was assigned to such a name looks like a secret."""
    if len(value) < _SHORTEST or is_blank(value):
        return False
    if any(map(str.isspace, value)):
        return kind == "password" and is_phrase(value)
    return _is_password(value) if kind == "password" else is_random(value)


def _is_password(value: str) -> bool:
    return is_chosen(value) or is_worded(value) or (len(value) >= _DRAWN and is_encoded(value))


class _Value(NamedTuple):
    """Where the value stands that is assigned at a place."""

    start: int
    end: int
    quoted: bool


def _value_at(place: _Place) -> _Value | None:
    """Return where the value stands; one whose quotes do not close ends like one that has none."""
    at = place.at
    opened = _OPENS.match(place.text, at)
    if opened is not None:
        at = opened.end()
        end = place.text.find(opened[1], at, at + _LONGEST)
        if end >= 0:
            return _Value(at, end, quoted=True)
    bare = _BARE.match(place.text, at)
    return None if bare is None else _Value(at, bare.end(), quoted=False)


def _is_secret(place: _Place, value: _Value) -> bool:
    said = place.text[value.start : value.end]
    if value.quoted:
        return is_kept_secret(place.kind, said)
    behind = place.text[value.end : value.end + 2]
    if behind[:1] in _CALLS or (place.is_tag and behind != "</"):
        return False
    if len(said) < _SHORTEST or is_blank(said):
        return False
    return is_random(said) or (value.start == place.at and _is_told(place, said))


def _is_told(place: _Place, value: str) -> bool:
    """Tell whether a value that does not look random is a secret by where it stands."""
    if place.is_tight and place.name.isupper():
        return _is_variable(place.kind, value)
    if place.kind != "password" or not _is_password(value):
        return False
    if place.is_flag or place.is_tag or (place.is_tight and place.head.startswith("ansible_")):
        return True
    if place.is_tight and place.text[max(0, place.starts - 1) : place.starts] in {"?", "&", ";"}:
        return True
    ends = place.at + len(value)
    fills_line = place.text[ends : ends + 1] in {"", "\n", "\r", "\\"}
    return fills_line and _ALONE.search(place.text[max(0, place.starts - 40) : place.starts]) is not None


def _is_variable(kind: str, value: str) -> bool:
    """Tell whether a variable of the environment is a secret; its name is in capitals, so it is no keyword of a call."""
    if kind == "password":
        return _is_password(value) or _PLAIN_WORD.fullmatch(value) is not None
    if kind == "secret" and is_worded(value):
        return True
    return len(value) >= _SHORTEST + 2 and is_chosen(value) and not value.isdigit()
