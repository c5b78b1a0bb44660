"""Reading prose: lines, sentences and words, near duplicates, names, and the constraints in what a user asks."""

import re
from collections.abc import Iterable, Iterator, Set
from itertools import islice
from math import ceil

from lowwater.core.references import NAME, quotes, reference_kind
from lowwater.core.summary.request import CriticalKind

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_IS_CJK = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[A-Za-z0-9_À-ɏЀ-ӿ][\w@./+-]*\w|[{_CJK}]+|\w")
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARKDOWN = re.compile(
    r"^\s*(?:#{1,6}\s+|[-*•>]\s+(?:\[[ xX]\]\s+)?|\d{1,2}[.)]\s+)+|\*\*|__(?=\w)|(?<=\w)__"
)
_BLOCK_START = re.compile(r"\s*(?:#{1,6}\s|[-*•>|]\s|\d{1,2}[.)]\s)")
_SEPARATOR_LINE = re.compile(r"[\s|:=*_-]*\Z")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[`A-Z0-9À-Þ])|(?<=[。！？])")
_STOP_WORDS = frozenset(
    "about after again also been before being both cannot could does doing done each else ever every from have here into "
    "itself just kind know like look made make many more most much must need only other over please really same shall "
    "should some something such sure take than that the their them then there these they thing think this those though "
    "through time under until upon very want wants well were what when where which while will with would your yours you "
    "can our out and for are not use using used let lets now see get got put was has had its but all any one two how "
    "why who did yes okay going able still back right way i'd we'd it's".split()
)


def flat(text: str) -> str:
    """Return `text` on one line."""
    return " ".join(text.split())


def one_line(text: str) -> str:
    """Return Markdown on one line, without its markup; headings, bullets and paragraphs are separated by a dot."""
    blocks: list[str] = []
    fresh = True
    for raw in text.splitlines():
        line = flat(_MARKDOWN.sub("", raw))
        if not line or line.startswith(("```", "~~~")) or _SEPARATOR_LINE.match(line):
            fresh = True
        elif fresh or _BLOCK_START.match(raw):
            blocks.append(line)
            fresh = raw.lstrip().startswith("#")
        else:
            blocks[-1] += " " + line
    return " · ".join(blocks)


def clip(text: str, limit: int) -> str:
    """Return `text` on one line of at most `limit` characters, cut between words; empty if the first word is longer."""
    line = flat(text)
    if len(line) <= limit:
        return line
    end = limit - 2  # room for an ellipsis and a backtick that closes cut code
    while end > 0 and not _may_cut(line, end):
        end -= 1
    cut = line[: max(end, 0)].rstrip(" ,;:-–—(\"'→·")
    if not cut:
        return ""
    return f"{cut}`…" if cut.count("`") % 2 else f"{cut}…"


def _may_cut(line: str, at: int) -> bool:
    if line[at].isspace() or line[at - 1].isspace():
        return True
    return bool(_IS_CJK.match(line[at]) or _IS_CJK.match(line[at - 1]))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of Markdown prose without code blocks; bullets and table rows end a sentence."""
    prose = _FENCE.sub("", text) if "```" in text or "~~~" in text else text
    for raw in prose.splitlines():
        line = _row(raw) if raw.lstrip().startswith("|") else flat(_MARKDOWN.sub("", raw))
        if not line or _SEPARATOR_LINE.match(line):
            continue
        yield from (piece.strip() for piece in _SENTENCE_END.split(line) if piece and piece.strip())


def _row(line: str) -> str:
    cells = [flat(_MARKDOWN.sub("", cell)) for cell in line.strip().strip("|").split("|")]
    filled = [cell for cell in cells if cell and not _SEPARATOR_LINE.match(cell)]
    return f"{filled[0]}: {', '.join(filled[1:])}" if len(filled) > 1 else "".join(filled)


def words(text: str) -> set[str]:
    """Return the words of `text` in lower case; scripts without spaces give pairs of characters."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        if word.isascii() or not _IS_CJK.match(word):
            found.add(word.lower())
        else:
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return found


def key_words(text: str) -> tuple[str, ...]:
    """Return the words that carry the meaning of `text`, sorted: no stop words, no very short words."""
    kept = (
        word for word in words(text) if word not in _STOP_WORDS and (len(word) > 2 or _IS_CJK.match(word))
    )
    return tuple(sorted(kept))


# Near duplicates


_NEAR = 0.8
"""Two texts that share this part of their words (or lines) are near duplicates."""


class NearDuplicates:
    """An index of texts, as sets of words or lines, for finding near duplicates of new ones.

    Sets are looked up by a prefix of their sorted members (prefix filtering), so that few need comparing.
    """

    def __init__(self, near: float = _NEAR) -> None:
        self._near = near
        self._sets: list[frozenset[int]] = []
        self._labels: list[str] = []
        self._by_member: dict[int, list[int]] = {}

    def nearest(self, members: Iterable[str]) -> str | None:
        """Return the label of the first set that shares enough members, or None."""
        hashed = _hashed(members)
        candidates = {at for member in self._prefix(hashed) for at in self._by_member.get(member, ())}
        found = [at for at in candidates if jaccard(hashed, self._sets[at]) >= self._near]
        return self._labels[min(found)] if found else None

    def add(self, members: Iterable[str], label: str = "") -> None:
        """Add a set under a label."""
        hashed = _hashed(members)
        for member in self._prefix(hashed):
            self._by_member.setdefault(member, []).append(len(self._sets))
        self._sets.append(hashed)
        self._labels.append(label)

    def _prefix(self, hashed: Set[int]) -> list[int]:
        """Return the first sorted members: those of any two near duplicates have one in common."""
        return sorted(hashed)[: len(hashed) - ceil(self._near * len(hashed)) + 1]


def jaccard(one: Set[object], other: Set[object]) -> float:
    """Return the Jaccard similarity of two sets; 1 for two empty ones."""
    together = len(one | other)
    return len(one & other) / together if together else 1.0


def lines_of(text: str) -> set[str]:
    """Return the distinct non-blank lines of a text."""
    return {line.strip() for line in text.splitlines() if line.strip()}


def _hashed(members: Iterable[str]) -> frozenset[int]:
    return frozenset(map(_stable_hash, members))


def _stable_hash(text: str) -> int:
    """Return the same hash in every process; Python's own depends on a seed, and the order of members must not."""
    return int.from_bytes(text.encode(errors="replace")[:24].ljust(24, b"\0"), "big") ^ (len(text) << 200)


# Names


Named = tuple[CriticalKind, str]
_LONGEST_WORD = 300
"""A word of this many characters is encoded data: not a name, and slow to search."""
_LONG_WORDS = re.compile(rf"\S{{{_LONGEST_WORD},}}")
_PROSE_SLASH = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)")
_LONGEST_QUOTE = 60
_PUNCTUATION = ".,;:!?()[]{}<>|*\"'`"
"""Characters around a word that are not part of a name."""


class NameFinder:
    """Finds names in texts. Names contain no spaces, so the names in each word are found once and remembered."""

    def __init__(self) -> None:
        self._by_word: dict[str, tuple[Named, ...]] = {}

    def named_in(self, text: str) -> list[Named]:
        """Return the paths, identifiers and values that a text names, with repetitions: names first, then quotations."""
        by_word, words = self._by_word, text.split()
        named: list[Named] = []
        for word in words:
            names = by_word.get(word)
            if names is None:
                names = by_word[word] = _names(word)
            if names:
                named += names
        if '"' in text or "`" in text or "'" in text:
            whole = _LONG_WORDS.sub(" ", text) if max(map(len, words)) >= _LONGEST_WORD else text
            named += [("value", flat(quote)) for quote in quotes(whole) if len(quote) <= _LONGEST_QUOTE]
        return named


def named_in(text: str) -> Iterator[Named]:
    """Yield the paths, identifiers and values that a text names, with repetitions."""
    yield from NameFinder().named_in(text)


def _names(word: str) -> tuple[Named, ...]:
    """Return the names in one word."""
    if len(word) >= _LONGEST_WORD or _is_plain_word(word.strip(_PUNCTUATION)):
        return ()
    named: list[Named] = []
    for name in NAME.findall(word):
        match reference_kind(name):
            case "path" if "." in name or not _PROSE_SLASH.fullmatch(name):
                named.append(("path", name))
            case "identifier" if len(name) > 3:
                named.append(("identifier", name))
            case "number":
                named.append(("value", name))
            case _:
                pass
    return tuple(named)


def _is_plain_word(word: str) -> bool:
    """Return whether a word is an ordinary one, which is never a name: letters only, no capitals but the first."""
    return not word or (word.isalpha() and (len(word) == 1 or word[1:].islower()))


# What users ask


_MOST_CONSTRAINTS = 10
"""The most constraints taken from one message; one with more is a document, which is better recalled."""
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
    *("do not", "does not", "n't", "dont", "never", "always", "must", "should not", "shall not"),
    *("prefer", "instead", "rather than", "make sure", "ensure", "avoid", "no need", "not allowed"),
    *("forbid", "stick to", "stick with", "only", "without", "keep", "compatib", "from now on"),
    *("throughout", "at all times", "under no", "as long as", "may not", "leave", "hands off"),
    *("immer", "niemals", "nicht", " pas", "toujours", "jamais", "nunca", "siempre"),
    *("不要", "必须", "請勿", "请勿", "只能", "不能", "不得", "禁止", "务必", "必須"),
    *("しないで", "必ず", "使わないで", "하지", "반드시", "금지"),
)
"""Every constraint contains one of these, and most messages contain none: a quick test before the slow pattern."""
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
    return islice((sentence for sentence in sentences(text) if _is_constraint(sentence)), _MOST_CONSTRAINTS)


def _hints_at_constraints(text: str) -> bool:
    """Return quickly whether a text may contain a constraint; Markdown inside a word could hide a hint, so it counts too."""
    plain = flat(text.casefold())
    hints = _ASCII_HINTS if plain.isascii() else _HINTS
    return any(hint in plain for hint in hints) or "**" in text or "__" in text


def _is_constraint(sentence: str) -> bool:
    if not 8 <= len(sentence) <= 600 or sentence.endswith(("?", "？")):
        return False
    return _CONSTRAINT.search(sentence) is not None and _DEBRIS.search(sentence) is None


def is_prohibition(sentence: str) -> bool:
    """Return whether a sentence says what must not be done."""
    return _PROHIBITION.search(sentence.replace("’", "'")) is not None


def is_question(text: str) -> bool:
    """Return whether a message asks a question rather than for something to be done."""
    return _QUESTION.search(text) is not None and not _DEMANDS.match(text)


def is_brief(text: str) -> bool:
    """Return whether a message has no meaning without the one before it, such as "yes" or "continue"."""
    return len(text) <= 40 and len(key_words(text)) <= (2 if len(text) <= 20 else 1)


def asks_back(text: str) -> str:
    """Return the question that a statement ends with, preceded by the sentence before it if it is short; else empty."""
    last = [sentence for sentence in sentences(text[-1_500:]) if sentence][-2:]
    if not last or not last[-1].endswith(("?", "？")):
        return ""
    return last[-1] if len(key_words(last[-1])) > 4 else " ".join(last)
