"""`images`: old images and documents are replaced by a line that says what was there, to save tokens and bytes."""

from collections.abc import Iterable, Iterator, Sequence

from lowwater.core.entries import Edit
from lowwater.core.mechanisms.edits import edit_if_smaller, newest_user, offer_edits
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones, smallest_tail
from lowwater.core.mechanisms.placeholder import way_back
from lowwater.core.mechanisms.results import is_picture, tokens_of_parts, weight_of
from lowwater.core.mechanisms.reuse import spared
from lowwater.core.messages import Document, Image, Text, ToolResult
from lowwater.core.proposals import Proposal, Target
from lowwater.core.view import Item, Summary, shown_parts

NAME = "images"
_LINE = 25
"""Tokens of the line that replaces an image."""


def propose(items: Sequence[Item], zones: Zones, context: EditContext) -> Proposal | None:
    """Propose to replace images and non-text documents in the middle, except those in tool results that pruning leaves alone.

    Images in the user's newest message stay. If the request has too many bytes, those between the middle and the newest
    exchange go as well.
    """
    newest = newest_user(items)
    reached = smallest_tail(items, zones) if context.too_large else zones
    found = targets(items, reached.middle)
    stays = spared(items, zones, context) if found else frozenset()
    found = [
        target
        for target in found
        if not (target.item == newest if len(target.path) == 1 else (target.item, target.path[:1]) in stays)
    ]
    return offer_edits(NAME, items, found, left=sum(min(target.tokens, _LINE) for target in found))


def targets(items: Sequence[Item], indexes: Iterable[int]) -> list[Target]:
    """Return every image and non-text document in these items, in messages and in tool results."""
    found: list[Target] = []
    for at in indexes:
        item = items[at]
        if isinstance(item, Summary) or not _holds_pictures(item):
            continue
        total = weight_of(item.message.parts)
        for path, part in _pictures(item):
            tokens = tokens_of_parts(item.tokens, total, [part])
            found.append(Target(item=at, path=path, tokens=tokens))
    return found


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items with the proposal's images replaced, each only if the line is smaller."""
    kept = list(items)
    for target in proposal.targets:
        item = kept[target.item]
        assert not isinstance(item, Summary)
        part = dict(_pictures(item)).get(target.path)
        if part is not None:
            line = Text(text=_line(part, item.number, context))
            kept[target.item] = edit_if_smaller(item, [Edit(path=target.path, by=line)], context.size)
    return kept


def _holds_pictures(item: Item) -> bool:
    """Return whether an item has any image; fast, because most have none."""
    if item.message.role == "assistant":
        return False
    for part in item.message.parts:
        inside = part.parts if isinstance(part, ToolResult) else (part,)
        if any(map(is_picture, inside)):
            return True
    return False


def _pictures(item: Item) -> Iterator[tuple[tuple[int, ...], Image | Document]]:
    for path, part in shown_parts(item):
        if isinstance(part, Image | Document) and is_picture(part):
            yield path, part


def _line(part: Image | Document, number: int, context: EditContext) -> str:
    size = f"{len(part.data) * 3 // 4:,} bytes" if part.source == "base64" else part.data[:80]
    what = f"{part.kind} · {part.media_type}" if part.media_type else part.kind
    back = way_back(number, None, offers_recall=context.offers_recall)
    return f"[{what} · {size} elided · {back}]"


MECHANISMS = (
    Mechanism(
        name=NAME,
        propose=propose,
        apply=apply,
        loses=0.3,
        label="old images",
        sentence="Put placeholders in place of old images",
        order=40,
        shares_parts=True,
    ),
)
