"""`shorten`: a very large tool result keeps its head, tail and error lines, and says what was cut (SPEC M)."""

from collections.abc import Iterable, Sequence

from lowwater.compact.digest import digest
from lowwater.compact.elide import replace_results
from lowwater.compact.making import Making, Result, calls_in, is_protected, part_tokens, results_in
from lowwater.compact.offer import offer
from lowwater.ports import Tokenizer
from lowwater.values.proposal import Proposal, Target
from lowwater.values.references import references
from lowwater.values.tools import classify, subject_of
from lowwater.values.view import Edited, Item, Original

NAME = "shorten"
_HEAD, _TAIL, _ERRORS, _DIGEST = 0.45, 0.25, 0.10, 0.15


def propose(
    items: Sequence[Item], indexes: Iterable[int], making: Making, *, limit: int, spare_protected: bool = True
) -> Proposal | None:
    """Offer the results in these items that are larger than `limit` tokens.

    Results of never-prune tools are spared, unless nothing else lets the view fit.
    """
    targets: list[Target] = []
    gone = left = 0
    for result in results_in(items, indexes, calls_in(items)):
        item = items[result.item]
        assert isinstance(item, Original | Edited)
        tokens = part_tokens(item, result.part)
        if tokens > limit and not (spare_protected and is_protected(result.tool, making.preset)):
            targets.append(Target(item=result.item, path=result.path, tokens=tokens))
            gone, left = gone + tokens, left + limit
    return offer(NAME, items, targets, leaves=left / gone if gone else 0.0)


def apply(items: Sequence[Item], proposal: Proposal, making: Making, *, limit: int) -> list[Item]:
    """Return the items with the proposal's results cut to about `limit` tokens each."""
    return replace_results(items, proposal, making, lambda result: shortened(result, making, limit))


def shortened(result: Result, making: Making, limit: int) -> str:
    """Return head, tail, error lines and a digest of a result within `limit` tokens, and how to get the rest."""
    text = result.part.text
    whole = making.tokenizer.count(text)
    per_token = len(text) / max(whole, 1)
    head = _whole_lines(text[: int(limit * _HEAD * per_token)], from_end=False)
    tail = _whole_lines(text[len(text) - int(limit * _TAIL * per_token) :], from_end=True)
    between = text[len(head) : len(text) - len(tail)]
    errors = _errors(between, int(limit * _ERRORS), making.tokenizer)
    kind = classify(result.tool)
    subject = subject_of(result.call) if result.call else ""
    outline = digest(
        between, tool=kind, subject=subject, tokens=int(limit * _DIGEST), tokenizer=making.tokenizer
    )
    back = (
        f"recall lw:{result.number}"
        if making.offers_recall
        else f"lw:{result.number}; ask for a part of it instead"
    )
    lines = between.count("\n")
    cut = f"[… {len(between):,} of {len(text):,} characters ({lines:,} lines) left out here · {back} …]"
    middle = [
        cut,
        *(["errors in what was left out:", *errors] if errors else []),
        *([outline] if outline else []),
    ]
    return "\n".join([head, *middle, "[… the end:]", tail])


def _whole_lines(text: str, *, from_end: bool) -> str:
    """Return `text` cut at a line's end, if that does not lose much of it."""
    at = text.find("\n") + 1 if from_end else text.rfind("\n") + 1
    if at == 0:
        return text
    cut = text[at:] if from_end else text[:at]
    return cut if len(cut) > len(text) // 2 else text


def _errors(text: str, tokens: int, tokenizer: Tokenizer) -> list[str]:
    found: list[str] = []
    for reference in references(text):
        if reference.kind == "error" and reference.text not in found:
            tokens -= tokenizer.count(reference.text) + 1
            if tokens < 0:
                break
            found.append(reference.text)
    return found
