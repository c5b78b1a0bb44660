"""Reading prose: sentences, names, and what a user asks for."""

import re
from collections.abc import Iterable, Iterator, Set
from itertools import islice
from math import ceil

from lowwater.core.references import NAME, kind_of, quotes
from lowwater.core.summary.request import CriticalKind

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_IS_CJK = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[A-Za-z0-9_À-ɏЀ-ӿ][\w@./+-]*\w|[{_CJK}]+|\w")
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|[-*•>]\s+(?:\[[ xX]\]\s+)?|\d{1,2}[.)]\s+)+|\*\*|__(?=\w)|(?<=\w)__")
_MARKED = re.compile(r"\s*(?:#{1,6}\s|[-*•>|]\s|\d{1,2}[.)]\s)")
_RULE = re.compile(r"[\s|:=*_-]*\Z")
_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[\"'(\[`A-Z0-9À-Þ])|(?<=[。！？])")
_STOP = frozenset(
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
    """Return Markdown on one line: headings, bullets and paragraphs are kept apart by a dot, their marks removed."""
    blocks: list[str] = []
    fresh = True
    for raw in text.splitlines():
        line = flat(_MARKS.sub("", raw))
        if not line or line.startswith(("```", "~~~")) or _RULE.match(line):
            fresh = True
        elif fresh or _MARKED.match(raw):
            blocks.append(line)
            fresh = raw.lstrip().startswith("#")
        else:
            blocks[-1] += " " + line
    return " · ".join(blocks)


def clip(text: str, limit: int) -> str:
    """Return `text` on one line of at most `limit` characters, cut between words; nothing if one word is longer."""
    line = flat(text)
    if len(line) <= limit:
        return line
    end = limit - 2  # an ellipsis, and perhaps a backtick that closes what was cut
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
    """Yield the sentences of Markdown prose, one bullet or table row at least each; code blocks are left out."""
    prose = _FENCE.sub("", text) if "```" in text or "~~~" in text else text
    for raw in prose.splitlines():
        line = _row(raw) if raw.lstrip().startswith("|") else flat(_MARKS.sub("", raw))
        if not line or _RULE.match(line):
            continue
        yield from (piece.strip() for piece in _END.split(line) if piece and piece.strip())


def _row(line: str) -> str:
    cells = [flat(_MARKS.sub("", cell)) for cell in line.strip().strip("|").split("|")]
    filled = [cell for cell in cells if cell and not _RULE.match(cell)]
    return f"{filled[0]}: {', '.join(filled[1:])}" if len(filled) > 1 else "".join(filled)


def words(text: str) -> set[str]:
    """Return the words of `text` in lower case; scripts without blanks give pairs of characters."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        if word.isascii() or not _IS_CJK.match(word):
            found.add(word.lower())
        else:
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return found


def key_words(text: str) -> tuple[str, ...]:
    """Return the words that carry the meaning of `text`, in alphabetical order: no particles, no very short words."""
    kept = (word for word in words(text) if word not in _STOP and (len(word) > 2 or _IS_CJK.match(word)))
    return tuple(sorted(kept))


NEAR = 0.8
"""Texts with this share of their words (or lines) in common say the same."""


class Seen:
    """A collection of texts, as sets of words or lines, that knows which new ones are near one it has."""

    def __init__(self, near: float = NEAR) -> None:
        self._near = near
        self._sets: list[frozenset[int]] = []
        self._labels: list[str] = []
        self._by_member: dict[int, list[int]] = {}

    def nearest(self, members: Iterable[str]) -> str | None:
        """Return the label of a set that shares enough members, or None."""
        hashed = _hashed(members)
        candidates = {at for member in self._prefix(hashed) for at in self._by_member.get(member, ())}
        found = [at for at in candidates if jaccard(hashed, self._sets[at]) >= self._near]
        return self._labels[min(found)] if found else None

    def add(self, members: Iterable[str], label: str = "") -> None:
        """Remember a set under a label."""
        hashed = _hashed(members)
        for member in self._prefix(hashed):
            self._by_member.setdefault(member, []).append(len(self._sets))
        self._sets.append(hashed)
        self._labels.append(label)

    def _prefix(self, hashed: Set[int]) -> list[int]:
        """Of two sets near enough, these first members in one order always have one in common."""
        return sorted(hashed)[: len(hashed) - ceil(self._near * len(hashed)) + 1]


def jaccard(one: Set[object], other: Set[object]) -> float:
    """Return what two sets have in common as a share of both; two empty ones are equal."""
    together = len(one | other)
    return len(one & other) / together if together else 1.0


def lines_of(text: str) -> set[str]:
    """Return the distinct lines of a text that are not blank."""
    return {line.strip() for line in text.splitlines() if line.strip()}


def _hashed(members: Iterable[str]) -> frozenset[int]:
    return frozenset(map(_stable_hash, members))


def _stable_hash(text: str) -> int:
    """Hash the same way in every process: the order of the members must not depend on a seed."""
    return int.from_bytes(text.encode(errors="replace")[:24].ljust(24, b"\0"), "big") ^ (len(text) << 200)


Named = tuple[CriticalKind, str]

_MONSTER = 300
"""Characters from which on a word is encoded data: no name, and slow to search."""
_MONSTERS = re.compile(rf"\S{{{_MONSTER},}}")
_PROSE_SLASH = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)")
_LONGEST_QUOTE = 60
_AROUND = ".,;:!?()[]{}<>|*\"'`"
"""What may stand around a word without being part of a name."""


class Naming:
    """Reads texts one after the other. No name has a blank in it, so a word that was met before need not be read again."""

    def __init__(self) -> None:
        self._met: dict[str, tuple[Named, ...]] = {}

    def named_in(self, text: str) -> list[Named]:
        """Return the paths, identifiers and values that a text names, repeated ones too: names, then quotes."""
        met, words = self._met, text.split()
        named: list[Named] = []
        for word in words:
            names = met.get(word)
            if names is None:
                names = met[word] = _names(word)
            if names:
                named += names
        if '"' in text or "`" in text or "'" in text:
            whole = _MONSTERS.sub(" ", text) if max(map(len, words)) >= _MONSTER else text
            named += [("value", flat(quote)) for quote in quotes(whole) if len(quote) <= _LONGEST_QUOTE]
        return named


def named_in(text: str) -> Iterator[Named]:
    """Yield the paths, identifiers and values that a text names, repeated ones too."""
    yield from Naming().named_in(text)


def _names(word: str) -> tuple[Named, ...]:
    """Return the names in one word."""
    if len(word) >= _MONSTER or _is_plain(word.strip(_AROUND)):
        return ()
    named: list[Named] = []
    for name in NAME.findall(word):
        match kind_of(name):
            case "path" if "." in name or not _PROSE_SLASH.fullmatch(name):
                named.append(("path", name))
            case "identifier" if len(name) > 3:
                named.append(("identifier", name))
            case "number":
                named.append(("value", name))
            case _:
                pass
    return tuple(named)


def _is_plain(word: str) -> bool:
    """Tell quickly whether a word is made of letters only and no capitals but the first: no name is."""
    return not word or (word.isalpha() and (len(word) == 1 or word[1:].islower()))


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
