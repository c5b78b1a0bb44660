"""`shorten`: a very large tool result keeps its head, tail and error lines, and says what was cut (SPEC M)."""

from collections.abc import Iterable, Sequence

from lowwater.compact.digest import digest
from lowwater.compact.elide import replace_results
from lowwater.compact.making import Making
from lowwater.compact.offer import offer
from lowwater.compact.placeholder import way_back
from lowwater.compact.results import Result, calls_in, results_in, text_of
from lowwater.ports import Tokenizer
from lowwater.values.proposal import Proposal, Target
from lowwater.values.references import error_lines
from lowwater.values.tools import subject_of
from lowwater.values.view import Item

NAME = "shorten"
LEAST = 200
"""The smallest limit in tokens: below it there is no room for what must be said."""

_HEAD, _TAIL, _ERRORS, _DIGEST = 0.45, 0.25, 0.10, 0.15
_FRAME = 60
"""Tokens of the lines between the pieces, and what joining them may add."""
_LONGEST_ERROR = 300


def propose(items: Sequence[Item], indexes: Iterable[int], making: Making, *, limit: int) -> Proposal | None:
    """Offer the results in these items that are larger than `limit` tokens; those of never-prune tools are spared."""
    results = results_in(items, indexes, calls_in(items))
    usual = [result for result in results if not making.preset.protects(result.tool)]
    return propose_for(items, usual, making, limit=limit)


def propose_for(
    items: Sequence[Item], results: Iterable[Result], making: Making, *, limit: int
) -> Proposal | None:
    """Offer those of `results` that are larger than `limit` tokens."""
    limit = max(limit, LEAST)
    targets: list[Target] = []
    for result in results:
        tokens = making.tokenizer.count(result.text) if items[result.item].tokens > limit else 0
        if tokens > limit:
            targets.append(Target(item=result.item, path=result.path, tokens=tokens))
    return offer(NAME, items, targets, left=limit * len(targets))


def apply(items: Sequence[Item], proposal: Proposal, making: Making, *, limit: int) -> list[Item]:
    """Return the items with the proposal's results cut to at most `limit` tokens each."""
    return replace_results(items, proposal, making, lambda result: shortened(result, making, limit))


def shortened(result: Result, making: Making, limit: int) -> str:
    """Return what to show of a result in at most `limit` tokens (or `LEAST`): head, what was cut, errors, digest, tail.

    Errors and digest are those of the part that was cut, and the handle leads to all of it.
    """
    text = text_of(result.original)
    room = max(limit, LEAST) - _FRAME
    head = _fitting(text, int(room * _HEAD), making.tokenizer, from_end=False)
    tail = _fitting(text[len(head) :], int(room * _TAIL), making.tokenizer, from_end=True)
    between = text[len(head) : len(text) - len(tail)]
    errors = _errors(between, int(room * _ERRORS), making.tokenizer)
    outline = digest(
        between,
        tool=result.kind,
        subject=subject_of(result.call) if result.call else "",
        tokens=int(room * _DIGEST),
        tokenizer=making.tokenizer,
    )
    lines = [
        head.rstrip("\n"),
        _cut(result, between, text, making),
        *(["errors in what was cut:", *errors] if errors else []),
        *([outline] if outline else []),
        "[… the end of it:]",
        tail.lstrip("\n"),
    ]
    return "\n".join(lines)


def _cut(result: Result, between: str, text: str, making: Making) -> str:
    back = way_back(result.number, result.call, offers_recall=making.offers_recall)
    lines = between.count("\n")
    return f"[… cut here: {len(between):,} of {len(text):,} characters, {lines:,} lines · {back} …]"


def _fitting(text: str, tokens: int, tokenizer: Tokenizer, *, from_end: bool) -> str:
    """Return as much of the start or end of `text` as fits, in whole lines if that does not lose much of it."""
    length = min(len(text), tokens * 4)
    while length > 0:
        piece = text[-length:] if from_end else text[:length]
        counted = tokenizer.count(piece)
        if counted <= tokens:
            return _whole_lines(piece, from_end=from_end)
        length = min(length - 1, int(length * tokens / counted))
    return ""


def _whole_lines(text: str, *, from_end: bool) -> str:
    at = text.find("\n") + 1 if from_end else text.rfind("\n") + 1
    cut = text[at:] if from_end else text[:at]
    return cut if at and len(cut) > len(text) // 2 else text


def _errors(text: str, tokens: int, tokenizer: Tokenizer) -> list[str]:
    found: dict[str, None] = {}
    for line in error_lines(text):
        said = line.text[:_LONGEST_ERROR]
        if said not in found:
            tokens -= tokenizer.count(said) + 1
            if tokens < 0:
                break
            found[said] = None
    return list(found)
