"""Reading what a user wants: constraints stated, questions asked, answers that only approve."""

import re
from collections.abc import Iterator
from itertools import islice

from lowwater.compact.summary.phrases import key_words, sentences

_MOST = 10
"""Constraints taken from one message; more than that is a document, which is better recalled."""
_CONSTRAINT = re.compile(
    r"""(?<!\bI\ )(?<!\bwe\ )(?<!\bthey\ )\b(?:do\ not|don'?t)\b(?!\ (?:know|see|think|understand|get\ it))
    | \bdon'?t\ (?:want|need)\b | \b(?:do|does)\ not\ (?:want|need)\b | \bnever\b(?!\ (?:mind|seen|heard)) | \balways\b
    | \bmust\b | \b(?:should|shall)(?:n't|\ not)\b | \bprefer(?:ably|s|red)?\b | \binstead\ of\b | \brather\ than\b
    | \bmake\ sure\b | \bensure\b | \bavoid\b | \bno\ need\b | \bnot\ allowed\b | \bforbid\w*\b | \bstick\ (?:to|with)\b
    | \bonly\ (?:use|touch|change|edit|run|do|the|in|on|when|if|for|after|with)\b
    | \b(?:use|keep|change|edit|touch|run)\s+only\b | \bwithout\ (?:\w+ing|any|a|the|changing)\b
    | \buse\s+[^\s.]+(?:\s[^\s.]+)?\s+instead\b | \bkeep\b.{0,40}\b(?:as\ is|unchanged|compatib\w+)
    | \bbackwards?[ -]compatib | \bfrom\ now\ on\b | \bthroughout\b | \bat\ all\ times\b | \bunder\ no\ circumstances\b
    | \bas\ long\ as\b
    | 不要|必须|請勿|请勿|只能|不能|不得|禁止|务必|必須|しないで|必ず|使わないで|하지\s?마|반드시|금지
    | \bnicht\b.{0,40}\b(?:darf|dürfen|soll)|\bimmer\b|\bniemals\b
    | \bne\ \w+\ pas\b|\btoujours\b|\bjamais\b | \bnunca\b|\bsiempre\b""",
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
    return islice((sentence for sentence in sentences(text) if _binds(sentence)), _MOST)


def _binds(sentence: str) -> bool:
    if not 8 <= len(sentence) <= 600 or sentence.endswith(("?", "？")) or _DEBRIS.search(sentence):
        return False
    return _CONSTRAINT.search(sentence) is not None


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
