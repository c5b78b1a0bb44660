"""Writing a digest: the outline, and in between the names most worth their tokens, in the order of the text."""

from collections.abc import Sequence

from lowwater.compact.digest.content import Content, Kind, read_content
from lowwater.compact.digest.names import names_in
from lowwater.compact.digest.outline import BLOCK, Mark, outline_of
from lowwater.compact.digest.pack import Priced, choose_marks, choose_names, price
from lowwater.ports import Tokenizer
from lowwater.values.references import NAME
from lowwater.values.tools import ToolClass

_HEAD, _TAIL = 1_500_000, 500_000
"""Of a longer text, only this many characters of its start and end are read."""

_OUTLINE_SHARE: dict[Kind, float] = {
    "code": 0.25,
    "diff": 0.3,
    "json": 0.15,
    "log": 0.25,
    "prose": 0.1,
    "search": 0.0,
    "table": 0.3,
}


def digest(
    text: str,
    *,
    tool: ToolClass,
    subject: str,
    tokens: int,
    tokenizer: Tokenizer,
    known: frozenset[str] = frozenset(),
) -> str:
    """Return the outline and the most useful names of `text` in at most `tokens`, or nothing if none fits.

    Names that the call's `subject` says, or that are `known` because they stand elsewhere in the view, are left out.
    """
    content = read_content(_bounded(text), tool=tool, subject=subject)
    outline = outline_of(content)
    share = int(tokens * _OUTLINE_SHARE[content.kind])
    marks = choose_marks([mark for mark in outline if mark.level < BLOCK], share, tokenizer)
    said = known.union(NAME.findall(subject), *(NAME.findall(mark.label) for mark in marks))
    left = tokens - sum(price(mark, tokenizer) for mark in marks)
    names = choose_names(names_in(content, said), left, tokenizer)
    left -= sum(offer.tokens for offer in names)
    if left > 0 and len(marks) < len(outline):
        marks = choose_marks(outline, share + left * 9 // 10, tokenizer)
        labelled = {name for mark in marks for name in NAME.findall(mark.label)}
        names = [offer for offer in names if offer.name.text not in labelled]
    return _fitted(content, marks, names, tokens, tokenizer)


def _bounded(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else text[:_HEAD] + "\n" + text[-_TAIL:]


def _fitted(
    content: Content, marks: list[Mark], names: list[Priced], tokens: int, tokenizer: Tokenizer
) -> str:
    """Return the digest; if the sum was over the budget, less the last paragraphs, the least names, the last marks."""
    while marks or names:
        written = _written(content, marks, names)
        over = tokenizer.count(written) - tokens
        if over <= 0:
            return written
        if any(mark.level == BLOCK for mark in marks):
            blocks = [mark.at for mark in marks if mark.level == BLOCK]
            gone = frozenset(blocks[-1 - over // 2 :])
            marks = [mark for mark in marks if mark.at not in gone]
        elif names:
            names = _without_least(names, over)
        else:
            marks = marks[:-1]
    return ""


def _without_least(names: list[Priced], tokens: int) -> list[Priced]:
    """Return the names without those worth least, at least `tokens` of them."""
    dropped: set[int] = set()
    for offer in sorted(names, key=lambda offer: (offer.value, -offer.order)):
        if tokens <= 0:
            break
        dropped.add(offer.order)
        tokens -= offer.tokens
    return [offer for offer in names if offer.order not in dropped]


def _written(content: Content, marks: Sequence[Mark], names: Sequence[Priced]) -> str:
    """Return a line for each mark with the names that follow it in the text, none for a paragraph without names."""
    lines: list[list[str]] = [[]]
    waiting = list(reversed(marks))
    at, paragraph = 0, False
    for offer in names:
        at = max(at, content.text.find(offer.name.text, at))
        while waiting and waiting[-1].at <= at:
            mark = waiting.pop()
            if paragraph and len(lines[-1]) == 1:
                lines.pop()
            paragraph = mark.level == BLOCK
            lines += [[mark.label]] if content.kind == "code" else [[mark.label], []]
        lines[-1].append(offer.name.shown)
    lines += [[mark.label] for mark in reversed(waiting) if mark.level != BLOCK]
    return "\n".join(" ".join(line) for line in lines if line)
