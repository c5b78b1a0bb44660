"""`reasoning`: old thinking is dropped; it served the turn in which it was written.

The running turn keeps the thinking that providers require: in Anthropic's format that of the answer which opened it, in
others all of it. Thinking that a model binds to its prefix cannot stay behind a change at all, not even in the tail.
"""

from collections.abc import Iterable, Sequence

from lowwater.core.entries import Edit
from lowwater.core.mechanisms.edits import edit, edit_if_smaller, offer_edits, turn_start
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, Zones
from lowwater.core.mechanisms.results import weight
from lowwater.core.messages import AnyPart, Message, Text, Thinking
from lowwater.core.proposals import Proposal, Target
from lowwater.core.view import Item, Summary, shown_parts

NAME = "reasoning"
LEFT_OUT = "[thinking left out]"


def propose(items: Sequence[Item], zones: Zones, _: EditContext) -> Proposal | None:
    """Propose to drop the thinking in the middle, except what the running turn needs."""
    turn = turn_start(items)
    opening = next(
        (
            at
            for at in range(0 if turn is None else turn, len(items))
            if items[at].message.role == "assistant"
        ),
        -1,
    )
    old = [
        at
        for at in zones.middle
        if turn is None or at < turn or (at != opening and _is_anthropic(items[at].message))
    ]
    return offer_edits(NAME, items, _thinking(items, old))


def apply(items: Sequence[Item], proposal: Proposal, context: EditContext) -> list[Item]:
    """Return the items without the proposal's thinking, each only if that makes it smaller."""
    kept = list(items)
    for at, edits in _drops(proposal.targets).items():
        kept[at] = edit_if_smaller(kept[at], edits, context.size)
    return kept


def strip_behind(items: Sequence[Item], first_changed: int, context: EditContext) -> list[Item]:
    """Return the items without any thinking behind `first_changed`, for models that bind thinking to the prefix."""
    kept = list(items)
    for at, edits in _drops(_thinking(items, range(first_changed, len(items)))).items():
        kept[at] = edit(kept[at], edits, context.size)
    for at in range(first_changed, len(kept)):
        remaining = _remaining_thinking(kept[at])
        if remaining:
            by = [
                Edit(path=remaining[0], by=Text(text=LEFT_OUT)),
                *(Edit(path=path, by=None) for path in remaining[1:]),
            ]
            kept[at] = edit(kept[at], by, context.size)
    return kept


def _remaining_thinking(item: Item) -> list[tuple[int, ...]]:
    """Return the paths of a message's remaining thinking, which is then all it has: it cannot stay, and the message may not be empty."""
    if item.message.role != "assistant" or isinstance(item, Summary):
        return []
    return [path for path, part in shown_parts(item) if isinstance(part, Thinking)]


def _drops(targets: Iterable[Target]) -> dict[int, list[Edit]]:
    drops: dict[int, list[Edit]] = {}
    for target in targets:
        drops.setdefault(target.item, []).append(Edit(path=target.path, by=None))
    return drops


def _thinking(items: Sequence[Item], indexes: Iterable[int]) -> list[Target]:
    """Return the thinking in these items; a message that has nothing else keeps it, because no message may be empty."""
    found: list[Target] = []
    for index in indexes:
        item = items[index]
        if item.message.role != "assistant" or isinstance(item, Summary):
            continue
        parts = item.message.parts
        if _thinks(parts) and any(map(_says_something, parts)):
            whole = sum(map(weight, parts))
            found.extend(
                Target(
                    item=index, path=path, tokens=round(item.tokens * weight(part) / whole) if whole else 0
                )
                for path, part in shown_parts(item)
                if isinstance(part, Thinking)
            )
    return found


def _thinks(parts: Iterable[AnyPart]) -> bool:
    return any(isinstance(part, Thinking) for part in parts)


def _says_something(part: AnyPart) -> bool:
    return bool(part.text.strip()) if isinstance(part, Text) else not isinstance(part, Thinking)


def _is_anthropic(message: Message) -> bool:
    return message.wire is not None and message.wire.format == "anthropic"


MECHANISMS = (
    Mechanism(
        name=NAME,
        propose=propose,
        apply=apply,
        loses=0.0,
        label="old reasoning",
        sentence="Drop old reasoning",
        order=30,
        shares_parts=True,
    ),
)
