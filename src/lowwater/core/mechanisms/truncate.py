"""`shorten`: a very large tool result is truncated to its beginning, its end and its error lines, and says what was cut.

`squeeze` is the last step if a prompt has to fit: it shortens whatever is left, in head and tail too, except the users' words.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Edit
from lowwater.core.mechanisms import images
from lowwater.core.mechanisms.digest import digest, names_in
from lowwater.core.mechanisms.edits import edit_if_smaller, newest_user, offer_edits
from lowwater.core.mechanisms.elide import names_shown, replace_results
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones, newest_group
from lowwater.core.mechanisms.placeholder import FRAME_SHARE, placeholder, way_back
from lowwater.core.mechanisms.results import ShownResult, calls_in, result_text, results_in, unprotected
from lowwater.core.mechanisms.reuse import spared
from lowwater.core.mechanisms.spans import index_within
from lowwater.core.messages import Text, ToolCall, block_in, legal_cuts
from lowwater.core.proposals import Proposal, Target
from lowwater.core.references import lines_with_errors
from lowwater.core.summary.frame import index_in, unframe
from lowwater.core.summary.template import Section
from lowwater.core.tools import subject_of
from lowwater.core.view import Item, Summary, is_pin_block, shown_parts, tokens_of_items
from lowwater.protocols import Tokenizer

NAME = "shorten"
SQUEEZE = "squeeze"
LEAST = 200
"""The smallest limit in tokens: below it there is no room for the lines that say what was cut."""
_ONE_LINE = 45
"""Tokens of a placeholder of one line."""
_AROUND = 8
"""Tokens of a message around its text."""
_SHORTEST_TALK = 60
"""The smallest limit in tokens for what the assistant said."""
_SHORT_VALUE = 120
"""Arguments of a call up to this many characters are never cut."""
_CUT_LINE = 16
_SUMMARY_FRAME = 80
_NEW, _TOLD = 800, 2_000
"""Tokens that each new result, which the model has not seen yet, and a summary keep as long as the prompt fits for one more turn."""
_MILD_STEPS = 6
"""The first steps of a squeeze, which respect that."""
_ROUNDS = 3
"""How often a step of a squeeze is repeated: sizes are estimates, so the first round may fall short."""

_HEAD, _TAIL, _ERRORS, _DIGEST = 0.45, 0.25, 0.10, 0.15
"""The shares of a truncated result's tokens that go to its parts."""
_FRAME = 60
"""Tokens of the lines between the pieces, and of what joining them may add."""
_LONGEST_ERROR = 300


def propose(
    items: Sequence[Item], indexes: Iterable[int], context: EditContext, *, limit: int
) -> Proposal | None:
    """Propose to truncate results in these items that are larger than `limit` tokens, except those of never-prune tools."""
    results = results_in(items, indexes, calls_in(items))
    return _propose_for(items, unprotected(results, context.preset), context, limit=limit)


def propose_at_wall(items: Sequence[Item], zones: Zones, context: EditContext) -> Proposal | None:
    """Propose to truncate long results that pruning leaves alone, in head and tail too, except in the newest exchange.

    Results of never-prune tools are truncated only if there are no others.
    """
    newest, limit = newest_group(items, zones), context.longest_result
    long = [
        result for result in context.results if result.item < newest and items[result.item].tokens > limit
    ]
    stays = spared(items, zones, context) if long else frozenset()
    left = [result for result in long if result.item not in zones.middle or result.place in stays]
    prunable = unprotected(left, context.preset)
    return _propose_for(items, prunable, context, limit=limit) or _propose_for(
        items, left, context, limit=limit
    )


def _propose_for(
    items: Sequence[Item], results: Iterable[ShownResult], context: EditContext, *, limit: int
) -> Proposal | None:
    """Propose to truncate those of `results` that are larger than `limit` tokens."""
    limit = max(limit, LEAST)
    targets: list[Target] = []
    for result in results:
        tokens = context.tokenizer.count(result.text) if items[result.item].tokens > limit else 0
        if tokens > limit:
            targets.append(Target(item=result.item, path=result.path, tokens=tokens))
    return offer_edits(NAME, items, targets, left=limit * len(targets))


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext, *, limit: int) -> list[Item]:
    """Return the items with the proposal's results truncated to at most `limit` tokens each."""
    return replace_results(items, proposal, context, lambda result: shortened(result, context, limit))


def apply_at_wall(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the proposal's results truncated as far as a prompt that does not fit needs it."""
    return apply(items, proposal, context, limit=context.longest_result)


def shortened(result: ShownResult, context: EditContext, limit: int) -> str:
    """Return a result in at most `limit` tokens (at least `LEAST`): beginning, what was cut, errors, digest, end.

    Errors and digest are of the part that was cut. The handle leads to the whole result.
    """
    text = result_text(result.original)
    room = max(limit, LEAST) - _FRAME
    head = _fitting(text, int(room * _HEAD), context.tokenizer, from_end=False)
    tail = _fitting(text[len(head) :], int(room * _TAIL), context.tokenizer, from_end=True)
    between = text[len(head) : len(text) - len(tail)]
    errors = _errors(between, int(room * _ERRORS), context.tokenizer)
    outline = digest(
        between,
        tool=result.kind,
        subject=subject_of(result.call) if result.call else "",
        tokens=int(room * _DIGEST),
        tokenizer=context.tokenizer,
        said=names_in("\n".join((head, *errors, tail))),
    )
    lines = [
        head.rstrip("\n"),
        _cut(result, between, text, context),
        *(["errors in what was cut:", *errors] if errors else []),
        *([outline] if outline else []),
        "[… the end of it:]",
        tail.lstrip("\n"),
    ]
    return "\n".join(lines)


def _cut(result: ShownResult, between: str, text: str, context: EditContext) -> str:
    back = way_back(result.number, result.call, offers_recall=context.offers_recall)
    lines = between.count("\n")
    return f"[… cut here: {len(between):,} of {len(text):,} characters, {lines:,} lines · {back} …]"


def _fitting(text: str, tokens: int, tokenizer: Tokenizer, *, from_end: bool) -> str:
    """Return as much of the start or end of `text` as fits into `tokens`, in whole lines unless that loses half of it."""
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
    for line in lines_with_errors(text):
        shown = line.text[:_LONGEST_ERROR]
        if shown not in found:
            tokens -= tokenizer.count(shown) + 1
            if tokens < 0:
                break
            found[shown] = None
    return list(found)


# The squeeze: at the wall and at a ceiling, whatever is left is shortened until it fits.


def propose_squeeze(items: Sequence[Item], _: Zones, context: EditContext) -> Proposal | None:
    """Propose everything that a squeeze may shorten: all but system prompts and the users' words."""
    targets: list[Target] = []
    left = 0
    for result in results_in(items, range(len(items)), calls_in(items), placeholders=True):
        if result.text and result.tokens > _ONE_LINE:
            targets.append(Target(item=result.item, path=result.path, tokens=result.tokens))
            left += _ONE_LINE
    for piece in _talk(items, range(len(items)), context):
        if piece.tokens > LEAST:
            targets.append(Target(item=piece.item, path=piece.path, tokens=piece.tokens))
            left += LEAST
    pictures = _pictures(items, range(len(items)))
    return offer_edits(SQUEEZE, items, [*targets, *pictures], left=left)


def apply_squeeze(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items shortened by as many tokens as the proposal removes, or by as many as possible."""
    return squeeze(items, context, tokens=tokens_of_items(items) - proposal.removes)


def squeeze(
    items: Sequence[Item], context: EditContext, *, tokens: int, among: Iterable[int] | None = None
) -> list[Item]:
    """Return the items shortened until they have at most `tokens`, or as few as possible.

    What is older than the newest exchange is shortened first, results before answers, those of never-prune tools last; then
    results of the newest exchange, then summaries, to some length; and beyond that only until the view has `context.must_fit`
    tokens. Within a step the largest are shortened first, all to the same length. Users' words, and what keeps calls and
    results paired, stay as they are. `among` are the indexes that may be changed, if not all.
    """
    squeezed = list(items)
    cuts = tuple(legal_cuts([item.message for item in items]))
    newest = newest_group(items, Zones(head=0, tail=0, cuts=cuts))
    allowed = list(range(len(items)) if among is None else among)
    older = [at for at in allowed if at < newest]
    latest = [at for at in allowed if at >= newest]
    steps: list[tuple[Callable[..., list[Item]], list[int], int]] = [
        (_squeeze_pictures, older, 0),
        (_squeeze_results, older, LEAST),
        (_squeeze_results, older, _ONE_LINE),
        (_squeeze_talk, older, LEAST),
        (_squeeze_results, latest, _NEW),
        (_squeeze_summaries, allowed, _TOLD),
        (_squeeze_results, latest, LEAST),
        (_squeeze_pictures, latest, 0),
        (_squeeze_summaries, allowed, LEAST),
        (_squeeze_results, latest, _ONE_LINE),
        (_squeeze_talk, latest, LEAST),
        (_squeeze_talk, allowed, _SHORTEST_TALK),
    ]
    for at, (step, indexes, least) in enumerate(steps):
        goal = tokens if at < _MILD_STEPS else max(tokens, context.must_fit)
        for _ in range(_ROUNDS):
            over = sum([item.tokens for item in squeezed]) - goal
            if over <= 0:
                return squeezed
            shorter = step(squeezed, indexes, context, over=over, least=least)
            gained = any(old is not new for old, new in zip(squeezed, shorter, strict=True))
            squeezed = shorter
            if not gained:
                break
    return squeezed


def without_pictures(items: Sequence[Item], context: EditContext) -> list[Item]:
    """Return the items with older images replaced by lines; those of the newest exchange only if there are no others."""
    cuts = tuple(legal_cuts([item.message for item in items]))
    newest = newest_group(items, Zones(head=0, tail=0, cuts=cuts))
    found = _pictures(items, range(newest)) or _pictures(items, range(newest, len(items)))
    proposal = offer_edits(images.NAME, items, found)
    return list(items) if proposal is None else images.apply(items, proposal, context)


class _Piece(Struct, frozen=True, kw_only=True, gc=False):
    """A text or a call in a message of the assistant."""

    item: int
    path: tuple[int, ...]
    part: Text | ToolCall
    tokens: int


def _level(sizes: Sequence[int], over: int, least: int) -> int:
    """Return the length to which everything longer must be cut for `over` tokens to be removed; never below `least`."""
    low, high = least, max([least, *sizes])
    while low < high:
        middle = (low + high + 1) // 2
        if sum(size - middle for size in sizes if size > middle) >= over:
            low = middle
        else:
            high = middle - 1
    return low


def _squeeze_results(
    items: Sequence[Item], indexes: Sequence[int], context: EditContext, *, over: int, least: int
) -> list[Item]:
    """Shorten results; those of never-prune tools only if the others do not suffice."""
    found = results_in(items, indexes, calls_in(items), placeholders=least < LEAST)
    squeezed = list(items)
    for protects in (False, True):
        results = [
            result for result in found if result.text and context.preset.protects(result.tool) is protects
        ]
        level = _level([result.tokens for result in results], over, least)
        longer = [result for result in results if result.tokens > level]
        known = (
            names_shown(items, {result.place for result in longer}) if _ONE_LINE < level < LEAST else set()
        )
        for result in longer:
            item = squeezed[result.item]
            text = (
                shortened(result, context, level) if level >= LEAST else _named(result, context, level, known)
            )
            shorter = edit_if_smaller(item, result.shown_as(text), context.size) if text else item
            over -= item.tokens - shorter.tokens
            squeezed[result.item] = shorter
        if over <= 0:
            break
    return squeezed


def _named(result: ShownResult, context: EditContext, tokens: int, known: set[str]) -> str:
    """Return the placeholder of a result in about so many tokens: one line, and a digest of what nothing else shows if there is room.

    The names that it shows become known.
    """
    whole = result_text(result.original)
    size = max(1, context.tokenizer.count(whole))
    text = placeholder(
        whole,
        number=result.number,
        call=result.call,
        offers_recall=context.offers_recall,
        tokenizer=context.tokenizer,
        digest_ratio=(tokens - _AROUND) / size - FRAME_SHARE,
        known=known,
        plain=tokens <= _ONE_LINE or context.preset.plain_placeholders,
        tokens=size,
    )
    known.update(names_in(text))
    return text


def _talk(items: Sequence[Item], indexes: Iterable[int], context: EditContext) -> list[_Piece]:
    """Return the texts and calls in the assistant's messages, without summaries."""
    found: list[_Piece] = []
    for at in indexes:
        item = items[at]
        if isinstance(item, Summary) or item.message.role != "assistant":
            continue
        for path, part in shown_parts(item):
            if isinstance(part, Text | ToolCall):
                text = part.text if isinstance(part, Text) else part.arguments
                found.append(_Piece(item=at, path=path, part=part, tokens=context.tokenizer.count(text)))
    return found


def _squeeze_talk(
    items: Sequence[Item], indexes: Sequence[int], context: EditContext, *, over: int, least: int
) -> list[Item]:
    """Cut the middle out of long answers, and out of long texts among the arguments of calls."""
    pieces, squeezed = _talk(items, indexes, context), list(items)
    level = _level([piece.tokens for piece in pieces], over, least)
    for piece in pieces:
        item = squeezed[piece.item]
        if piece.tokens > level and not isinstance(item, Summary):
            part = _cut_piece(piece.part, level, item.number, context)
            squeezed[piece.item] = edit_if_smaller(item, [Edit(path=piece.path, by=part)], context.size)
    return squeezed


def _cut_piece(part: Text | ToolCall, limit: int, number: int, context: EditContext) -> Text | ToolCall:
    if isinstance(part, Text):
        return replace(part, text=_without_middle(part.text, limit, number, context))
    try:
        arguments = msgspec.json.decode(part.arguments)
    except msgspec.DecodeError:
        return part
    if not isinstance(arguments, dict):
        return part
    long = sum(1 for value in arguments.values() if isinstance(value, str) and len(value) > _SHORT_VALUE)
    room = max(1, limit // max(1, long))
    cut = {
        name: _without_middle(value, room, number, context)
        if isinstance(value, str) and len(value) > _SHORT_VALUE
        else value
        for name, value in arguments.items()
    }
    return replace(part, arguments=msgspec.json.encode(cut).decode())


def _without_middle(text: str, limit: int, number: int, context: EditContext) -> str:
    """Return the start and the end of a text in about `limit` tokens, or the text itself if that is not shorter."""
    room = max(0, limit - _CUT_LINE)
    head = _fitting(text, int(room * 0.6), context.tokenizer, from_end=False)
    tail = _fitting(text[len(head) :], int(room * 0.4), context.tokenizer, from_end=True)
    cut = len(text) - len(head) - len(tail)
    shorter = f"{head}[… {cut:,} characters cut · lw:{number} …]{tail}"
    return shorter if len(shorter) < len(text) else text


def _pictures(items: Sequence[Item], indexes: Iterable[int]) -> list[Target]:
    """Return the images in results and in users' messages, except the newest user message."""
    newest = newest_user(items)
    return [
        target for target in images.targets(items, indexes) if len(target.path) > 1 or target.item != newest
    ]


def _squeeze_pictures(
    items: Sequence[Item], indexes: Sequence[int], context: EditContext, *, over: int, least: int
) -> list[Item]:
    del over, least  # An image is replaced as a whole.
    found = offer_edits(images.NAME, items, _pictures(items, indexes))
    return list(items) if found is None else images.apply(items, found, context)


def _squeeze_summaries(
    items: Sequence[Item], indexes: Sequence[int], context: EditContext, *, over: int, least: int
) -> list[Item]:
    """Cut the end off long summaries; a provider's block is signed and cannot be cut, and pins stay whole."""
    squeezed = list(items)
    summaries = [
        at
        for at in indexes
        if isinstance(items[at], Summary) and not (block_in(items[at].message) or is_pin_block(items[at]))
    ]
    level = _level([items[at].tokens for at in summaries], over, least)
    for at in summaries:
        item = squeezed[at]
        assert isinstance(item, Summary)
        if item.tokens > level:
            shorter = _shorter_summary(item, level, context)
            squeezed[at] = shorter if shorter.tokens < item.tokens else item
    return squeezed


def _sections(text: str, *, of_constraints: bool) -> str:
    """Return the sections of a summary with the user's constraints, or all other sections."""
    heading = f"## {Section.CONSTRAINTS}"
    found = [each for each in re.split(r"(?m)^(?=## )", text) if each.startswith(heading) is of_constraints]
    return "".join(found).strip()


def _shorter_summary(summary: Summary, limit: int, context: EditContext) -> Summary:
    """Return the summary in about `limit` tokens; it and the index behind it lose the same share, the index what is worth least.

    What the user demanded and forbade stays whole, and comes first.
    """
    count = context.tokenizer.count
    text, index = unframe(summary.message.text), index_in(summary.message.text)
    constraints, others = _sections(text, of_constraints=True), _sections(text, of_constraints=False)
    room = max(1, limit - _SUMMARY_FRAME - count(constraints))
    listed, written = count(index), count(others)
    for_index = room * listed // max(1, listed + written)
    rest = _fitting(others, max(1, room - for_index), context.tokenizer, from_end=False)
    kept = f"{constraints}\n\n{rest}".strip()
    shorter = index_within(for_index, [summary], (), kept, context) if index else ""
    parts = [
        replace(part, text=part.text.replace(text, kept, 1).replace(index, shorter, 1))
        if isinstance(part, Text)
        else part
        for part in summary.message.parts
    ]
    message = summary.message.with_parts(parts)
    return replace(summary, message=message, tokens=context.size(message))


MECHANISMS = (
    Mechanism(
        name=NAME,
        propose=propose_at_wall,
        apply=apply_at_wall,
        loses=0.0,  # never priced: what does not fit is shortened whatever that costs
        label="long results",
        sentence="Shorten long tool outputs to their beginning, end and error lines",
        reach="everywhere",
        order=50,
        shares_parts=True,
    ),
    Mechanism(
        name=SQUEEZE,
        propose=propose_squeeze,
        apply=apply_squeeze,
        loses=0.0,
        label="whatever is left",
        sentence="If that is not enough, shorten whatever is left but the users' words, the newest results last",
        reach="last-resort",
        order=60,
        shares_parts=True,
    ),
)
