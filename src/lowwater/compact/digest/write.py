"""Writing a digest: the outline, and in between the names most worth their tokens, in the order of the text."""

from collections.abc import Sequence

from lowwater.compact.digest.content import Content, Kind, read_content
from lowwater.compact.digest.names import names_in
from lowwater.compact.digest.outline import Mark, outline_of
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
    marks = choose_marks(outline, share, tokenizer)
    said = known.union(NAME.findall(subject), *(NAME.findall(mark.label) for mark in marks))
    left = tokens - sum(price(mark, tokenizer) for mark in marks)
    names = choose_names(names_in(content, said), left, tokenizer)
    left -= sum(offer.tokens for offer in names)
    if left > 0 and len(marks) < len(outline):
        marks = choose_marks(outline, share + left, tokenizer)
    return _fitted(content, marks, names, tokens, tokenizer)


def _bounded(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else text[:_HEAD] + "\n" + text[-_TAIL:]


def _fitted(
    content: Content, marks: list[Mark], names: list[Priced], tokens: int, tokenizer: Tokenizer
) -> str:
    """Return the digest, less the names worth least and then the last marks if the sum was over the budget."""
    while marks or names:
        written = _written(content, marks, names)
        over = tokenizer.count(written) - tokens
        if over <= 0:
            return written
        if names:
            least = sorted(names, key=lambda offer: (offer.value, -offer.order))
            gone = 0
            while over > 0 and gone < len(least):
                over -= least[gone].tokens
                gone += 1
            dropped = {offer.order for offer in least[:gone]}
            names = [offer for offer in names if offer.order not in dropped]
        else:
            marks = marks[:-1]
    return ""


def _written(content: Content, marks: Sequence[Mark], names: Sequence[Priced]) -> str:
    """Return one line for each mark, with the names that follow it in the text."""
    lines: list[list[str]] = [[]]
    labels = [mark.label for mark in marks]
    same_line = content.kind == "code"
    at = following = 0
    for offer in names:
        found = content.text.find(offer.name.text, max(0, at - 200))
        at = max(at, found)
        while following < len(marks) and marks[following].at <= at:
            lines += [[labels[following]]] if same_line else [[labels[following]], []]
            following += 1
        lines[-1].append(offer.name.shown)
    lines += [[label] for label in labels[following:]]
    return "\n".join(" ".join(line) for line in lines if line)
