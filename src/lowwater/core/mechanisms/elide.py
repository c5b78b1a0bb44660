"""`elide`: old tool results are replaced by placeholders that say what was there and how to get it back."""

from collections.abc import Callable, Container, Sequence

from lowwater.core.costs.losses import LOST_BY_ELISION
from lowwater.core.mechanisms.digest import names_in
from lowwater.core.mechanisms.edits import edit_if_smaller, offer_edits
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones
from lowwater.core.mechanisms.placeholder import FRAME_SHARE, placeholder
from lowwater.core.mechanisms.results import PartPlace, ShownResult, calls_in, result_text, results_in
from lowwater.core.mechanisms.reuse import spared
from lowwater.core.messages import Span, ToolCall, ToolResult
from lowwater.core.proposals import Proposal, Target
from lowwater.core.view import Item, shown_parts

NAME = "elide"
_LINE, _SHORT_LINE = 45, 25
"""Tokens of a plain placeholder, and of the line above a digest."""
_LOST_WITHOUT_DIGEST = 0.8
"""The share of later uses that a placeholder without a digest no longer serves (measured: `make bench-recall`)."""


def propose(items: Sequence[Item], zones: Zones, context: EditContext) -> Proposal | None:
    """Propose to replace long results in the middle, except the most valuable ones and those of never-prune tools."""
    stays = context.taken | spared(items, zones, context)
    long = [
        result
        for result in context.results
        if result.item in zones.middle
        and result.place not in stays
        and len(result.text) > context.preset.elide_limit_chars
    ]
    targets = [Target(item=result.item, path=result.path, tokens=result.tokens) for result in long]
    return offer_edits(NAME, items, targets, left=sum(_expected_size(result, context) for result in long))


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the proposal's results replaced, each only if its placeholder is smaller.

    A digest leaves out what is shown elsewhere: in the talk, in results that stay, and in the placeholders before it. What an
    older one of the results had too comes last in it.
    """
    if _is_plain(context):
        return replace_results(
            items, proposal, context, lambda result: _placeholder(result, context, plain=True)
        )
    gone = {(target.item, target.path) for target in proposal.targets}
    known, repeated = names_shown(items, gone, context.summarised), set[str]()

    def text_for(result: ShownResult) -> str:
        text = _placeholder(result, context, known=known, repeated=repeated)
        repeated.update(names_in(result.text))
        known.update(names_in(text))
        return text

    return replace_results(items, proposal, context, text_for)


def replace_results(
    items: Sequence[Item], proposal: Proposal, context: EditContext, text_for: Callable[[ShownResult], str]
) -> list[Item]:
    """Return the items with each target's text replaced by what `text_for` returns; if that is empty, the result stays."""
    wanted = {(target.item, target.path) for target in proposal.targets}
    replaced = list(items)
    for result in results_in(items, sorted({item for item, _ in wanted}), calls_in(items)):
        text = text_for(result) if result.place in wanted else ""
        if text:
            item = replaced[result.item]
            replaced[result.item] = edit_if_smaller(item, result.shown_as(text), context.size)
    return replaced


def _is_plain(context: EditContext) -> bool:
    """Return whether placeholders have one line, without a digest."""
    return context.preset.plain_placeholders or context.digest_ratio <= 0


def _share_lost(context: EditContext) -> float:
    return _LOST_WITHOUT_DIGEST if _is_plain(context) else LOST_BY_ELISION


def _expected_size(result: ShownResult, context: EditContext) -> int:
    """Return about how many tokens the placeholder of a result will have."""
    if _is_plain(context):
        return min(result.tokens, _LINE)
    return min(result.tokens, max(_SHORT_LINE, int(result.tokens * (context.digest_ratio + FRAME_SHARE))))


def names_shown(
    items: Sequence[Item], gone: Container[PartPlace], summarised: Sequence[Span] = ()
) -> set[str]:
    """Return the names in what will be shown: what users and assistant wrote, calls, and the results that are not `gone`."""
    shown: set[str] = set()
    for at, item in enumerate(items):
        if any(span.start <= at < span.stop for span in summarised):
            continue
        shown |= names_in(item.message.text)
        for path, part in shown_parts(item):
            if isinstance(part, ToolCall):
                shown |= names_in(part.arguments)
            elif isinstance(part, ToolResult) and (at, path) not in gone:
                shown |= names_in(part.text)
    return shown


def _placeholder(
    result: ShownResult,
    context: EditContext,
    *,
    known: Container[str] = frozenset(),
    repeated: Container[str] = frozenset(),
    plain: bool = False,
) -> str:
    """Return the placeholder of a result's original text; its size is a share of what is shown of the result now."""
    whole = result_text(result.original)
    shown = min(1.0, len(result.text) / max(len(whole), 1))
    return placeholder(
        whole,
        number=result.number,
        call=result.call,
        offers_recall=context.offers_recall,
        tokenizer=context.tokenizer,
        digest_ratio=(context.digest_ratio + FRAME_SHARE) * shown - FRAME_SHARE,
        known=known,
        repeated=repeated,
        plain=plain,
        tokens=result.tokens if plain else None,
    )


MECHANISMS = (
    Mechanism(
        name=NAME,
        propose=propose,
        apply=apply,
        loses=_share_lost,
        label="old results",
        sentence="Put short placeholders in place of old tool results",
        order=20,
        shares_parts=True,
    ),
)
