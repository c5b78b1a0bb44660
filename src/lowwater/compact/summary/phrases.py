"""Words, sentences and cuts: what the summarizer does with prose."""

import re
from collections.abc import Iterator

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
