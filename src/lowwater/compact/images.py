"""`images`: old pictures and documents become a line that says what was there; bytes count as well as tokens."""

from collections.abc import Sequence

from lowwater.compact.making import Making, edit, part_tokens
from lowwater.compact.offer import offer
from lowwater.compact.placeholder import way_back
from lowwater.compact.zones import Zones
from lowwater.values.entries import Edit
from lowwater.values.parts import AnyPart, Document, Image, Text
from lowwater.values.proposal import Proposal, Target
from lowwater.values.view import Edited, Item, Original, parts_of

NAME = "images"
_LEAVES = 0.02


def propose(items: Sequence[Item], zones: Zones) -> Proposal | None:
    """Offer every picture and non-text document in the middle, in messages and in tool results."""
    targets: list[Target] = []
    for index in zones.middle:
        item = items[index]
        if isinstance(item, Original | Edited):
            targets.extend(
                Target(item=index, path=path, tokens=part_tokens(item, part))
                for path, part in parts_of(item)
                if _is_picture(part)
            )
    return offer(NAME, items, targets, leaves=_LEAVES)


def apply(items: Sequence[Item], proposal: Proposal, making: Making) -> list[Item]:
    """Return the items with the proposal's pictures replaced."""
    kept = list(items)
    for target in proposal.targets:
        item = kept[target.item]
        assert isinstance(item, Original | Edited)
        part = dict(parts_of(item)).get(target.path)
        if part is not None and _is_picture(part):
            text = Text(text=_line(part, item.number, making))
            kept[target.item] = edit(item, [Edit(path=target.path, by=text)], making.size)
    return kept


def bytes_of(items: Sequence[Item]) -> int:
    """Return how many bytes of pictures and documents a view carries inline."""
    return sum(
        len(part.data)
        for item in items
        for _, part in parts_of(item)
        if isinstance(part, Image | Document) and part.source == "base64"
    )


def _is_picture(part: AnyPart) -> bool:
    return isinstance(part, Image) or (isinstance(part, Document) and part.source != "text")


def _line(part: AnyPart, number: int, making: Making) -> str:
    assert isinstance(part, Image | Document)
    size = f"{len(part.data) * 3 // 4:,} bytes" if part.source == "base64" else part.data[:80]
    what = f"{part.kind} · {part.media_type}" if part.media_type else part.kind
    back = way_back(number, None, offers_recall=making.offers_recall)
    return f"[{what} · {size} elided · {back}]"
