"""Telling the language of prose by its script and its most frequent words, as far as a summary needs it."""

import re
from collections import Counter

_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
}
_FREQUENT = {
    "en": "the and of to is was were that with for this not are from has have been which its it by on be as after when but into will",
    "de": "der die das und ist nicht ein eine mit wird wurde wurden den dem des zu auf für von im sich auch dass noch bei aus nach wie über soll oder als",
    "fr": "le la les et est une des du que qui dans pour pas sur avec sont ne été au aux par ce cette plus ou mais il elle sans",
    "es": "el los las y es una del que en por con para no se ha su al como más pero lo está fue sin sobre también",
    "it": "il gli e è una di che per con non del della dei sono nel nella al alla più come anche ha stato dopo senza si le",
    "pt": "o os as e é uma do da dos das que em por com para não se ao foi mais como mas na no são está sem também",
    "nl": "de het een en van is niet dat met voor zijn op te in wordt werd maar ook aan bij naar uit er door nog",
}
_WORDS = {language: frozenset(words.split()) for language, words in _FREQUENT.items()}
_WORD = re.compile(r"[^\W\d_]+")
_READ = 20_000
_FEWEST = 12
"""Frequent words without which nothing is said about the language of a text."""
_FEWEST_LETTERS = 40
_TRACE = 0.01
"""A conversation in which a script has less than this share of the letters only quotes it."""
_PRESENT = 0.12
"""The share of the words known that a language of a conversation has at least."""
_SCRIPT_SHARE = 0.15


def language_of(text: str) -> str:
    """Return the language of a text as a code, empty if it cannot be told."""
    read = text[:_READ]
    letters = sum(character.isalpha() for character in read)
    for code, script in _SCRIPTS.items():
        if len(script.findall(read)) > _SCRIPT_SHARE * max(letters, 40):
            return code
    counts = _counts(read)
    if counts.total() < _FEWEST:
        return ""
    (code, most), *others = counts.most_common()
    return code if not others or most > 1.2 * others[0][1] else ""


def other_language(text: str, conversation: str) -> bool:
    """Return whether a text is in a language that the conversation does not use; English counts as used, since summaries have English headings."""
    code = language_of(text)
    if code in {"", "en"}:
        return False
    if code in _SCRIPTS:
        letters = sum(map(str.isalpha, conversation[:_READ]))
        return (
            letters > _FEWEST_LETTERS and len(_SCRIPTS[code].findall(conversation[:_READ])) < _TRACE * letters
        )
    counts = _counts(conversation)
    return counts.total() >= _FEWEST and counts[code] < _PRESENT * counts.total()


def _counts(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word, times in Counter(_WORD.findall(text.lower())).items():
        for code, frequent in _WORDS.items():
            if word in frequent:
                counts[code] += times
    return counts
