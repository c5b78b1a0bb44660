"""Thinking that a model binds to the prefix before it.

Per model and session, in this order:

- behind a signed block that the provider wrote itself (`native`), thinking that directly follows what the block stands for
  stays: the provider knows that nothing else changed;
- where the request thinks adaptively, and its `thinking` or the settings ask for it (`bound_thinking: drop`), the blocks are
  left in and the provider drops those that no longer fit (`thinking.block_binding`, a beta);
- otherwise they are stripped.

A model that does not bind thinking keeps all of it. But where a request sets a budget (`thinking: enabled`), the provider refuses a tool
loop whose first answer does not begin with its thinking. A compaction that makes another answer the first one gives that answer its thinking
back; only where there is none to give back is thinking disabled, call by call, and told.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lowwater.core.entries import Compacted, apply_edits
from lowwater.core.mechanisms import native
from lowwater.core.mechanisms.editing import EditContext
from lowwater.core.mechanisms.reasoning import strip_behind
from lowwater.core.messages import Message, Thinking
from lowwater.core.models.model import Model
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import Edited, Item, Original, Summary, view_items


def unbind(state: State, *, after: int) -> State:
    """Remember that thinking in messages numbered above `after` was thought behind a prefix that is gone."""
    if not state.binds_thinking:
        return state
    return replace(state, unbound=after if state.unbound is None else min(after, state.unbound))


def strip_unbound(state: State, setup: Setup, at: float) -> State:
    """Take thinking that its model would refuse out of the view, unless the provider is to drop it."""
    if state.unbound is None or drops_thinking(state, setup):
        return state
    items = state.ledger.view.items
    first = next(
        (
            index
            for index, item in enumerate(items)
            if not isinstance(item, Summary) and item.number > state.unbound
        ),
        len(items),
    )
    kept = strip_behind(items, first, setup.edit_context(offers_recall=state.offers_recall))
    state = replace(state, unbound=None)
    if all(old is new for old, new in zip(items, kept, strict=True)):
        return state
    entry = Compacted(at=at, mechanisms=("reasoning",), stands=view_items(kept))
    return replace(state, ledger=state.ledger.append(entry))


def restore_opening_thinking(items: Sequence[Item], state: State, context: EditContext) -> list[Item]:
    """Return the items with its thinking back in the answer that opens the running tool loop, if a budget needs it there."""
    kept = list(items)
    at = opening_of(kept) if _has_budget(state) and not state.binds_thinking else None
    item = None if at is None else kept[at]
    if at is None or not isinstance(item, Edited) or _begins_with_thinking(item.message):
        return kept
    if not _begins_with_thinking(item.original):
        return kept
    thought = {(place,) for place, part in enumerate(item.original.parts) if isinstance(part, Thinking)}
    edits = tuple(each for each in item.edits if each.path not in thought)
    message = apply_edits(item.original, edits) if edits else item.original
    if edits:
        kept[at] = replace(item, edits=edits, message=message, tokens=context.size(message))
    else:
        kept[at] = Original(number=item.number, message=message, tokens=context.size(message))
    return kept


def is_thinking_refused(state: State) -> bool:
    """Return whether a provider would refuse the view with the thinking budget of the session's requests."""
    items = state.ledger.view.items
    at = opening_of(items) if _has_budget(state) else None
    return at is not None and not _begins_with_thinking(items[at].message)


def opening_of(items: Sequence[Item]) -> int | None:
    """Return the answer that opened the tool loop whose results are being sent; None if none are, or nobody asked for it.

    Neighbouring messages of one role are one turn, as they are to the provider.
    """
    opening: int | None = None
    asked = is_result = False
    role = ""
    for at, item in enumerate(items):
        message = item.message
        if message.role in ("system", "developer") or not message.parts:
            continue
        now = "assistant" if message.role == "assistant" else "user"
        has_result = bool(message.results)
        is_result = now == "user" and (has_result or (role == "user" and is_result))
        role = now
        if now == "user" and not is_result:
            opening, asked = None, True
        elif now == "assistant" and asked and opening is None:
            opening = at
    return opening if is_result else None


def _begins_with_thinking(message: Message) -> bool:
    return isinstance(next(iter(message.parts), None), Thinking)


def _has_budget(state: State) -> bool:
    asked = _thinking_of(state)
    return isinstance(asked, dict) and asked.get("type") == "enabled"


def drops_thinking(state: State, setup: Setup) -> bool:
    """Return whether the provider is asked to drop thinking that no longer fits: only adaptive thinking can be."""
    match _thinking_of(state):
        case {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": str(asked)}}:
            return asked == "drop_block"
        case {"type": "adaptive"}:
            return setup.settings.model.bound_thinking == "drop"
        case _:
            return False


def loose_from(before: Sequence[Item], after: Sequence[Item], first: int, model: Model) -> int:
    """Return the index in `after` behind which thinking no longer stands where it was thought; `first` is what changed first."""
    block = native.own_block(after)
    if block is None or block is native.own_block(before) or not model.binds_thinking:
        return first
    return len(after) if native.follows_directly(before, after) else 1


def unbound_behind(items: Sequence[Item], first: int, unbound: int | None) -> int | None:
    """Return the number above which thinking is loose, where that begins at `first` and elsewhere was `unbound` before."""
    numbers = [item.number for item in items[first:] if not isinstance(item, Summary)]
    loose = [number - 1 for number in numbers[:1]] + ([] if unbound is None else [unbound])
    return min(loose, default=None)


def _thinking_of(state: State) -> Any:  # noqa: ANN401 - JSON of the client's
    """Return the `thinking` of the session's requests, None if they have none."""
    written = state.parameters.partition(b"\0")[0]
    return msgspec.json.decode(written) if written else None
