"""Thinking blocks and what providers require of them when earlier messages change.

Some models bind thinking to the prefix before it: if the prefix changes, the provider refuses the thinking behind it. What
happens to such thinking, in this order:

- behind a signed block that the provider wrote itself (`native`), thinking that directly follows what the block replaces
  stays, because the provider knows that nothing else changed;
- if the request uses adaptive thinking, and asks for it itself or by the settings (`bound_thinking: drop`), the thinking is
  left in and the provider drops what no longer fits (`thinking.block_binding`, a beta of Anthropic's);
- otherwise it is stripped.

Other models keep all thinking. But if a request sets a budget (`thinking: enabled`), Anthropic refuses a tool loop whose
first answer does not begin with thinking. If a compaction makes another answer the first, that answer gets its thinking back;
if it had none, thinking is disabled for the call, and the session says so.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lowwater.core.entries import Compacted, apply_edits
from lowwater.core.mechanisms.mechanism import EditContext
from lowwater.core.messages import Message, Thinking
from lowwater.core.models.model import Model
from lowwater.core.turns.state import Setup, State
from lowwater.core.view import Edited, Item, Original, Summary, own_block, view_items


def unbind(state: State, *, after: int) -> State:
    """Remember that thinking in messages numbered above `after` was bound to a prefix that is gone."""
    if not state.binds_thinking:
        return state
    return replace(
        state,
        thinking_unbound_above=after
        if state.thinking_unbound_above is None
        else min(after, state.thinking_unbound_above),
    )


def strip_unbound(state: State, setup: Setup, at: float) -> State:
    """Remove thinking that its model would refuse from the view, unless the provider is asked to drop it."""
    if state.thinking_unbound_above is None or drops_thinking(state, setup):
        return state
    items = state.ledger.view.items
    first = next(
        (
            index
            for index, item in enumerate(items)
            if not isinstance(item, Summary) and item.number > state.thinking_unbound_above
        ),
        len(items),
    )
    from lowwater.core.mechanisms.reasoning import strip_behind  # noqa: PLC0415 - loaded at the first compaction

    kept = strip_behind(items, first, setup.edit_context(offers_recall=state.offers_recall))
    state = replace(state, thinking_unbound_above=None)
    if all(old is new for old, new in zip(items, kept, strict=True)):
        return state
    # Without a price: the provider would refuse the request.
    entry = Compacted(at=at, mechanisms=("reasoning",), items=view_items(kept))
    return replace(state, ledger=state.ledger.append(entry))


def drops_thinking(state: State, setup: Setup) -> bool:
    """Return whether the provider is asked to drop thinking that no longer fits, which is possible for adaptive thinking only."""
    match _thinking_parameter(state):
        case {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": str(behaviour)}}:
            return behaviour == "drop_block"
        case {"type": "adaptive"}:
            return setup.settings.model.bound_thinking == "drop"
        case _:
            return False


def first_unbound(before: Sequence[Item], after: Sequence[Item], first: int, model: Model) -> int:
    """Return the index in `after` from which on thinking is no longer bound to its prefix; `first` is the first changed item."""
    block = own_block(after)
    if block is None or block is own_block(before) or not model.binds_thinking:
        return first
    from lowwater.core.mechanisms import native  # noqa: PLC0415 - loaded if there is a block

    return len(after) if native.follows_directly(before, after) else 1


def unbound_behind(items: Sequence[Item], first: int, unbound: int | None) -> int | None:
    """Return the message number above which thinking is unbound, if it is from index `first` on and was above `unbound` before."""
    numbers = [item.number for item in items[first:] if not isinstance(item, Summary)]
    candidates = [number - 1 for number in numbers[:1]] + ([] if unbound is None else [unbound])
    return min(candidates, default=None)


def is_thinking_refused(state: State) -> bool:
    """Return whether the provider would refuse the view, given the thinking budget of the session's requests."""
    items = state.ledger.view.items
    at = tool_loop_opening(items) if _has_budget(state) else None
    return at is not None and not _begins_with_thinking(items[at].message)


def restore_opening_thinking(items: Sequence[Item], state: State, context: EditContext) -> list[Item]:
    """Return the items with the thinking restored in the answer that opens the running tool loop, if a budget requires it there."""
    kept = list(items)
    at = tool_loop_opening(kept) if _has_budget(state) and not state.binds_thinking else None
    item = None if at is None else kept[at]
    if at is None or not isinstance(item, Edited) or _begins_with_thinking(item.message):
        return kept
    if not _begins_with_thinking(item.original):
        return kept
    thinking = {(place,) for place, part in enumerate(item.original.parts) if isinstance(part, Thinking)}
    edits = tuple(each for each in item.edits if each.path not in thinking)
    message = apply_edits(item.original, edits) if edits else item.original
    if edits:
        kept[at] = replace(item, edits=edits, message=message, tokens=context.size(message))
    else:
        kept[at] = Original(number=item.number, message=message, tokens=context.size(message))
    return kept


def tool_loop_opening(items: Sequence[Item]) -> int | None:
    """Return the index of the answer that opened the running tool loop; None if no tool results are being sent, or no user spoke.

    Neighbouring messages of one role count as one, as they do for the provider.
    """
    opening: int | None = None
    user_spoke = is_result = False
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
            opening, user_spoke = None, True
        elif now == "assistant" and user_spoke and opening is None:
            opening = at
    return opening if is_result else None


def _begins_with_thinking(message: Message) -> bool:
    return isinstance(next(iter(message.parts), None), Thinking)


def _has_budget(state: State) -> bool:
    """Return whether the session's requests set a thinking budget."""
    thinking = _thinking_parameter(state)
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


def _thinking_parameter(state: State) -> Any:  # noqa: ANN401 - JSON of the client's
    """Return the `thinking` parameter of the session's requests; None if they have none."""
    encoded = state.parameters.partition(b"\0")[0]
    return msgspec.json.decode(encoded) if encoded else None
