"""What happens to a client's new messages on arrival: they become ledger entries, and very large tool results are truncated."""

from collections.abc import Sequence
from math import ceil

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.core.decisions import Reason, scaled
from lowwater.core.entries import Compacted, Entry, PreambleChanged, Retracted, Rewound
from lowwater.core.events import Compaction, Phase
from lowwater.core.ledger import next_compaction_number
from lowwater.core.limits import TURNS_BETWEEN, Limits
from lowwater.core.messages import Format, Message, newest_block, turns
from lowwater.core.policies.safety_rules import after_turn
from lowwater.core.reconcile import Reconciled, entries_for, reconcile
from lowwater.core.turns.costs import surcharge_with, with_price
from lowwater.core.turns.decision_context import accepts_native_blocks
from lowwater.core.turns.effects import Announce, Steps
from lowwater.core.turns.state import Acted, Setup, State
from lowwater.core.turns.thinking import unbind
from lowwater.core.view import (
    Item,
    Original,
    Summary,
    first_difference,
    own_block,
    tokens_of_items,
    view_items,
)

REPEAT = "repeat"
"""The mechanism that shows the newest user message again when going back left only a summary of it."""
NOTE = "Note: earlier turns of this conversation were compacted; a summary stands where they were."
"""What a policy with `note_in_system` appends to the system prompt, once."""
_NOTE_BLOCK = msgspec.json.encode({"type": "text", "text": NOTE})
_TURNS_MEASURED = 8
"""How many of the newest turns' growth is remembered."""
_SHORTEN = "shorten"
"""The mechanism that truncates tool results."""


class Incoming(Struct, frozen=True, kw_only=True):
    """What a client brings to a turn; None where nothing changed."""

    messages: tuple[Message, ...] | None = None
    """The client's whole list of messages."""
    format: Format | None = None
    """The format that one of them shows unmistakably."""
    assumed: Format | None = None
    """The format in which they were read if none does."""
    system: bytes | None = None
    tools: bytes | None = None
    max_tokens: int | None = None
    offers_recall: bool = False
    parameters: bytes = b""
    """Other parameters that the provider's cache depends on: thinking, tool choice."""


def sync_messages(state: State, incoming: Incoming, setup: Setup, at: float) -> State:
    """Return the state with everything that the client brings; its list of messages is matched with the ledger."""
    state = _with_preamble(state, incoming, setup, at)
    if incoming.messages is not None:
        reconciled = reconcile(state.ledger, incoming.messages)
        new = _entries(reconciled, setup, at)
        if any(isinstance(entry, Retracted | Rewound) for entry in new):
            state = _gone_back(state, reconciled, new, setup, at)
        else:
            state = replace(state, ledger=state.ledger.extend(new))
    return replace(
        with_detected_format(state, incoming.format, incoming.assumed),
        max_tokens=incoming.max_tokens,
        offers_recall=incoming.offers_recall,
        parameters=incoming.parameters,
    )


def _gone_back(state: State, reconciled: Reconciled, new: Sequence[Entry], setup: Setup, at: float) -> State:
    """Return the state after a client changed or dropped messages that it had sent before."""
    from lowwater.core.turns.pins import with_instructions, with_surviving_pins  # noqa: PLC0415 - loaded when a client goes back

    before = with_instructions(state)
    after = with_surviving_pins(before, replace(before, ledger=before.ledger.extend(new)), reconciled)
    return with_newest_user(after, setup, at)


def _with_preamble(state: State, incoming: Incoming, setup: Setup, at: float) -> State:
    view = state.ledger.view
    system = view.system
    if incoming.system is not None:
        system = with_note(incoming.system) if state.has_system_note else incoming.system
    tools = view.tools if incoming.tools is None else incoming.tools
    if (system, tools) == (view.system, view.tools):
        return state
    entry = PreambleChanged(at=at, system=system, tools=tools, tokens=setup.size_preamble(system, tools))
    changed = replace(state, ledger=state.ledger.append(entry))
    # Messages that come together with the first system prompt were written behind it, so their thinking stays bound.
    return unbind(changed, after=0) if len(view.items) else changed


def with_note(system: bytes) -> bytes:
    """Return a system prompt, as the JSON of a request, with the note at its end; an empty one stays empty."""
    if system[:1] == b'"':
        text = msgspec.json.decode(system, type=str)
        return msgspec.json.encode(f"{text}\n\n{NOTE}") if text and not text.endswith(NOTE) else system
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        is_there = any(bytes(block) == _NOTE_BLOCK for block in blocks)
        return msgspec.json.encode([*blocks, Raw(_NOTE_BLOCK)]) if blocks and not is_there else system
    return system


def without_note(system: bytes) -> bytes:
    """Return a system prompt without the note."""
    if system[:1] == b'"':
        return msgspec.json.encode(msgspec.json.decode(system, type=str).removesuffix(f"\n\n{NOTE}"))
    if system[:1] == b"[":
        blocks = msgspec.json.decode(system, type=list[Raw])
        return msgspec.json.encode([block for block in blocks if bytes(block) != _NOTE_BLOCK])
    return system


def _entries(reconciled: Reconciled, setup: Setup, at: float) -> list[Entry]:
    return entries_for(reconciled, [setup.size(message) for message in reconciled.new], at)


def with_newest_user(state: State, setup: Setup, at: float) -> State:
    """Return the state with the newest user message word for word in its view, if going back left only a summary of it."""
    from lowwater.core.mechanisms.spans import repeat_newest_user  # noqa: PLC0415 - loaded when a client goes back

    context = setup.edit_context(offers_recall=state.offers_recall)
    repeated = repeat_newest_user(state.ledger.view.items, state.ledger.messages, context)
    if repeated is None:
        return state
    # Without a price: the model has to see what it is asked, whatever that costs.
    entry = Compacted(at=at, mechanisms=(REPEAT,), items=view_items(repeated.items))
    changed = replace(state, ledger=state.ledger.append(entry))
    # Thinking behind it was bound to a prefix without it.
    return unbind(changed, after=repeated.number)


def append(state: State, messages: Sequence[Message], setup: Setup, at: float) -> State:
    """Return the state with messages appended."""
    new = _entries(Reconciled(new=tuple(messages)), setup, at)
    return replace(state, ledger=state.ledger.extend(new))


def measure_growth(state: State) -> State:
    """Return the state with the counted growth of its newest turn; for a list that came all at once, of each turn in it."""
    if state.sent_tokens:
        grown = [state.counted - state.sent_tokens]
    else:
        items = state.ledger.view.items
        spans = turns([item.message for item in items])[-_TURNS_MEASURED - 1 :]
        grown = [sum(item.tokens for item in items[span.start : span.stop]) for span in spans[1:]]
    new = [tokens for tokens in grown if tokens > 0]
    if not new:
        return state
    # Turns are counted here and not with the answer, because a client may append answers without ever recording one.
    return replace(
        state, recent_growth=(*state.recent_growth, *new)[-_TURNS_MEASURED:], past=after_turn(state.past)
    )


def with_detected_format(state: State, format: Format | None, assumed: Format | None = None) -> State:
    """Return the state with the format that a message shows; until one does, remember the format in which they were read."""
    if format is None and state.format is None:
        return replace(state, assumed_format=assumed or state.assumed_format)
    return replace(state, format=format or state.format)


# Compaction blocks of the provider


def replace_unreadable_block(state: State, setup: Setup, at: float) -> State:
    """Replace the compaction block at the start of the view by its text, if the model in use cannot read blocks.

    That takes no call: the text stands for the same messages as the block. Thinking behind it was bound to the block.
    """
    items = state.ledger.view.items
    if own_block(items) is None or accepts_native_blocks(state, setup):
        return state
    from lowwater.core.mechanisms import native  # noqa: PLC0415 - loaded if there is a block

    kept = native.as_text(items, setup.edit_context(offers_recall=state.offers_recall))
    # Without a price: this model's provider would refuse the block.
    entry = Compacted(at=at, mechanisms=(native.AS_TEXT,), items=view_items(kept))
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=0)


def absorb_native_block(state: State, setup: Setup, at: float) -> State:
    """If an answer brought a compaction block of the provider, let the block replace everything before it in the view.

    Providers do not document whether thinking behind such a block is bound to what they left out, so it counts as unbound.
    """
    items = state.ledger.view.items
    at_block = newest_block([item.message for item in items])
    if at_block is None:
        return state
    from lowwater.core.mechanisms import native  # noqa: PLC0415 - loaded if there is a block

    kept = native.absorb(items, setup.edit_context(offers_recall=state.offers_recall))
    if kept is None:
        return state
    from lowwater.core.turns.pins import with_instructions  # noqa: PLC0415 - loaded if there is a block

    state = with_instructions(state)
    entry = Compacted(at=at, mechanisms=(native.NAME,), items=view_items(kept))
    # Without a price: the provider reads nothing before its block any more, whether we send it or not.
    holder = items[at_block]
    assert not isinstance(holder, Summary), (
        "a block that was requested stands first in the view, with nothing before it to absorb"
    )
    return unbind(replace(state, ledger=state.ledger.append(entry)), after=holder.number - 1)


# Large tool results, and images that a provider refused


def truncate_on_arrival(state: State, setup: Setup, at: float, limits: Limits) -> Acted:
    """Truncate tool results that came since the last answer, if they are too large or there is no room for them.

    That has no price: they are in no cache yet, so that truncating them only makes this call and all later ones cheaper.
    """
    if not setup.settings.compression.enabled:
        return Acted(state=state, events=())
    new = _unseen(state)
    first = _truncate_large(state, setup, at, limits=limits, new=new)
    second = _make_room(first.state, setup, at, limits=limits, new=new)
    return Acted(state=second.state, events=(*first.events, *second.events))


def _truncate_large(state: State, setup: Setup, at: float, *, limits: Limits, new: range) -> Acted:
    """Truncate results above the insertion limit, if the model can recall the rest or the prompt would not fit otherwise."""
    limit = _insertion_limit(limits, setup)
    if limit <= 0 or not (state.offers_recall or state.prompt > limits.wall):
        return Acted(state=state, events=())
    from lowwater.core.mechanisms import truncate  # noqa: PLC0415 - loaded with the first large result

    items, context = state.ledger.view.items, setup.edit_context(offers_recall=state.offers_recall)
    most = int(limit / state.calibration.scale)
    proposal = truncate.propose(items, new, context, limit=most)
    if proposal is None:
        return Acted(state=state, events=())
    reason = Reason(code="too-large-at-the-door", facts={"limit": limit, "results": len(proposal.targets)})
    return _committed(state, truncate.apply(items, proposal, context, limit=most), reason, at, setup)


def _insertion_limit(limits: Limits, setup: Setup) -> int:
    """Return the largest tool result that enters the prompt whole, in the model's tokens."""
    settings = setup.settings.tool_results
    return min(int(settings.insertion_limit_ratio * limits.context), settings.insertion_limit_tokens)


def _make_room(state: State, setup: Setup, at: float, *, limits: Limits, new: range) -> Acted:
    """Truncate new results for which there is no room, if that suffices and the last compaction was only a few turns ago.

    What was sent before stays as it is, so the cache stays valid. Room is left for the turns until the next compaction may
    come. If this turn alone adds more than a fifth of what may be sent, older messages are compacted instead.
    """
    past = state.past
    if state.prompt <= limits.most or not past.compactions or past.turns_since >= TURNS_BETWEEN:
        return Acted(state=state, events=())
    if scaled(sum(state.recent_growth[-1:]), state.calibration.scale) > limits.most // TURNS_BETWEEN:
        return Acted(state=state, events=())
    from lowwater.core.mechanisms import truncate  # noqa: PLC0415 - loaded when there is no room

    items, context = state.ledger.view.items, setup.edit_context(offers_recall=state.offers_recall)
    turns_left = TURNS_BETWEEN - 1 - past.turns_since
    wanted = max(limits.roomy, limits.most - turns_left * limits.growth)
    squeezed = truncate.squeeze(items, context, tokens=_counted_below(state, wanted), among=new)
    if tokens_of_items(squeezed) > _counted_below(state, limits.most):
        return Acted(state=state, events=())
    changed = sum(old is not now for old, now in zip(items, squeezed, strict=True))
    facts = {"results": changed, "prompt": state.prompt, "limit": limits.most, "turns": past.turns_since}
    return _committed(state, squeezed, Reason(code="no-room-at-the-door", facts={**facts}), at, setup)


def _counted_below(state: State, prompt: int) -> int:
    """Return how many counted tokens the view may have for the prompt to have at most `prompt` of the model's tokens."""
    over = ceil((state.prompt - prompt) / state.calibration.scale)
    return state.ledger.view.tokens - over


def _unseen(state: State) -> range:
    """Return the indexes of the items behind the last answer."""
    items = state.ledger.view.items
    start = len(items)
    while (
        start > 0 and isinstance(items[start - 1], Original) and items[start - 1].message.role != "assistant"
    ):
        start -= 1
    return range(start, len(items))


def drop_pictures(state: State, setup: Setup, at: float) -> Steps[Acted]:
    """Replace older images by placeholders after a provider refused the request for them; the newest exchange's only if there are no others."""
    from lowwater.core.mechanisms import truncate  # noqa: PLC0415 - loaded when images are refused

    yield Announce(ledger=state.ledger)
    items, context = state.ledger.view.items, setup.edit_context(offers_recall=state.offers_recall)
    # Without a price: the same request would be refused again.
    dropped = truncate.without_pictures(items, context)
    changed = [at for at, (old, now) in enumerate(zip(items, dropped, strict=True)) if old is not now]
    because = Reason(code="images-refused", facts={"messages": len(changed)})
    acted = _committed(state, dropped, because, at, setup, mechanism="images")
    if not acted.events:
        return acted
    first = items[changed[0]]
    behind = scaled(sum(item.tokens for item in dropped[changed[0] :]), state.calibration.scale)
    event = replace(acted.events[0], disturbed=behind)
    after = 0 if isinstance(first, Summary) else first.number - 1
    # Thinking behind the images was bound to a prefix that is gone.
    return Acted(state=unbind(replace(acted.state, last_compaction=event), after=after), events=(event,))


def _committed(
    state: State,
    items: Sequence[Item],
    reason: Reason,
    at: float,
    setup: Setup,
    *,
    mechanism: str = _SHORTEN,
) -> Acted:
    """Return the state with these items as its view, and the event that reports it, if they are smaller."""
    before = state.ledger.view.items
    entry = Compacted(at=at, mechanisms=(mechanism,), items=view_items(items))
    shortened = replace(state, ledger=state.ledger.append(entry))
    event = Compaction(
        at=at,
        model=state.model.name,
        mode="shorten" if mechanism == _SHORTEN else "prune",
        mechanisms=entry.mechanisms,
        because=reason,
        before=state.prompt,
        after=shortened.prompt,
        items_before=len(before),
        items_after=len(items),
        first_changed=first_difference(before, items),
        disturbed=0,
        phases=(Phase(mechanism=mechanism, removed=state.prompt - shortened.prompt),),
        number=next_compaction_number(state.ledger),
    )
    if event.reclaimed <= 0:
        return Acted(state=state, events=())
    # What never reached the provider would have been written to its cache by the next call.
    surcharge = surcharge_with(state.compaction_surcharge, with_price(event, state, setup))
    return Acted(
        state=replace(
            shortened,
            totals=state.totals.with_compaction(event, summaries=0),
            last_compaction=event,
            compaction_surcharge=surcharge,
        ),
        events=(event,),
    )
