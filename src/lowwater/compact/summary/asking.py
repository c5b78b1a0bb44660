"""Reading what a user wants: constraints stated, questions asked, answers that only approve."""

import re
from collections.abc import Iterator
from itertools import islice

from lowwater.compact.summary.phrases import flat, key_words, sentences

_MOST = 10
"""Constraints taken from one message; more than that is a document, which is better recalled."""
_CONSTRAINT = re.compile(
    r"""\b(?:
      (?<!\bI\ )(?<!\bwe\ )(?<!\bthey\ )(?:do\ not|don'?t)\b(?!\ (?:know|see|think|understand|get\ it))
    | don'?t\ (?:want|need)\b | (?:do|does)\ not\ (?:want|need)\b | never\b(?!\ (?:mind|seen|heard)) | always\b
    | must(?:n'?t)?\b | may\ not\b | (?:should|shall)(?:n't|\ not)\b | leave\b.{0,40}\balone\b | hands\ off\b | prefer(?:ably|s|red)?\b | instead\ of\b | rather\ than\b
    | make\ sure\b | ensure\b | avoid\b | no\ need\b | not\ allowed\b | forbid\w*\b | stick\ (?:to|with)\b
    | only\ (?:use|touch|change|edit|run|do|the|in|on|when|if|for|after|with)\b
    | (?:use|keep|change|edit|touch|run)\s+only\b | without\ (?:\w+ing|any|a|the|changing)\b
    | use\s+[^\s.]+(?:\s[^\s.]+)?\s+instead\b | keep\b.{0,40}\b(?:as\ is|unchanged|compatib\w+)
    | backwards?[ -]compatib | from\ now\ on\b | throughout\b | at\ all\ times\b | under\ no\ circumstances\b
    | as\ long\ as\b | nicht\b.{0,40}\b(?:darf|dürfen|soll) | immer\b | niemals\b
    | ne\ \w+\ pas\b | toujours\b | jamais\b | nunca\b | siempre\b
    ) | 不要|必须|請勿|请勿|只能|不能|不得|禁止|务必|必須|しないで|必ず|使わないで|하지\s?마|반드시|금지""",
    re.VERBOSE | re.IGNORECASE,
)
_HINTS = (
    *(
        "do not",
        "does not",
        "n't",
        "dont",
        "never",
        "always",
        "must",
        "should not",
        "shall not",
        "prefer",
        "instead",
    ),
    *(
        "rather than",
        "make sure",
        "ensure",
        "avoid",
        "no need",
        "not allowed",
        "forbid",
        "stick to",
        "stick with",
    ),
    *(
        "only",
        "without",
        "keep",
        "compatib",
        "from now on",
        "throughout",
        "at all times",
        "under no",
        "as long as",
        "may not",
        "leave",
        "hands off",
    ),
    *("immer", "niemals", "nicht", " pas", "toujours", "jamais", "nunca", "siempre"),
    *(
        "不要",
        "必须",
        "請勿",
        "请勿",
        "只能",
        "不能",
        "不得",
        "禁止",
        "务必",
        "必須",
        "しないで",
        "必ず",
        "使わないで",
    ),
    *("하지", "반드시", "금지"),
)
"""Every constraint has one of these in it, and most of what users say has none."""
_ASCII_HINTS = tuple(hint for hint in _HINTS if hint.isascii())
_PROHIBITION = re.compile(
    r"""\b(?:
      do\ not | don'?t | does\ not | doesn'?t | never | must\ not | mustn'?t | may\ not | can(?:not|\ not|'t)
    | (?:should|shall|will)\ not | (?:should|sha|wo)n'?t | avoid\w* | forb[ia]d\w* | prohibit\w* | not\ allowed | no\ longer
    | under\ no\ circumstances | hands\ off | leave\b.{0,40}\balone | off[ -]limits | without\ \w+ing | refrain\w*
    | nicht | niemals | kein\w* | ne\ \w+\ pas | jamais | nunca
    )\b | 不要|請勿|请勿|不能|不得|禁止|しないで|使わないで|하지\s?마|금지""",
    re.VERBOSE | re.IGNORECASE,
)
_DEBRIS = re.compile(
    r"^\+|^[\w./-]+:\d+|^\s*(?:at |\$ |> |\d{4}-\d\d-\d\d)|[{;]\s*$|=>|\\n|^\W+$|^[A-Z]+ \d+"
)
_DEMANDS = re.compile(
    r"""^(?:ok(?:ay)?|yes|sure|great|cool|so|and|also|hey|hi|please|now|then|right)?[,.!\s]*
    (?:(?:can|could|would|will)\s+(?:you|we)|let'?s|please)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_QUESTION = re.compile(r"[?？]\s*$|[?？]\s*\n|か。\s*$", re.MULTILINE)


def constraints_in(text: str) -> Iterator[str]:
    """Yield the sentences in which a user says what must, must not or should preferably be done."""
    if not _hints_at_constraints(text):
        return iter(())
    return islice((sentence for sentence in sentences(text) if _binds(sentence)), _MOST)


def _hints_at_constraints(text: str) -> bool:
    """Tell quickly whether a text may hold a constraint; marks inside of words would hide it."""
    plain = flat(text.casefold())
    hints = _ASCII_HINTS if plain.isascii() else _HINTS
    return any(hint in plain for hint in hints) or "**" in text or "__" in text


def _binds(sentence: str) -> bool:
    if not 8 <= len(sentence) <= 600 or sentence.endswith(("?", "？")):
        return False
    return _CONSTRAINT.search(sentence) is not None and _DEBRIS.search(sentence) is None


def is_prohibition(sentence: str) -> bool:
    """Tell whether a sentence says what must not be done."""
    return _PROHIBITION.search(sentence.replace("’", "'")) is not None


def is_question(text: str) -> bool:
    """Tell whether a message wants to know something rather than have something done."""
    return _QUESTION.search(text) is not None and not _DEMANDS.match(text)


def is_brief(text: str) -> bool:
    """Tell whether a message means nothing without the one before it, such as "yes" or "continue"."""
    return len(text) <= 40 and len(key_words(text)) <= (2 if len(text) <= 20 else 1)


def asks_back(text: str) -> str:
    """Return the question a statement ends with, with the sentence before it if it is short; or nothing."""
    last = [sentence for sentence in sentences(text[-1_500:]) if sentence][-2:]
    if not last or not last[-1].endswith(("?", "？")):
        return ""
    return last[-1] if len(key_words(last[-1])) > 4 else " ".join(last)
