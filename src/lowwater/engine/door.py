"""Tool results are shortened before they first enter the prompt where that saves a later rewrite (docs/specification.md: M).

Very large ones always; and shortly after a compaction those for which there is no room, so that it is not followed by another at once.
"""

from collections.abc import Sequence
from math import ceil

from msgspec.structs import replace

from lowwater.compact import shorten
from lowwater.engine.commit import Acted, next_number, totals_after
from lowwater.engine.effects import Announce, Steps
from lowwater.engine.setup import Setup
from lowwater.engine.situate import limits_for
from lowwater.engine.state import State
from lowwater.engine.thinking import unbind
from lowwater.engine.work import first_difference, tokens_of
from lowwater.values.decision import Reason
from lowwater.values.entries import Compacted
from lowwater.values.events import Compaction, Phase
from lowwater.values.limits import TURNS_BETWEEN, Limits
from lowwater.values.situation import scaled
from lowwater.values.view import Item, Original, Summary, stands_of


def shorten_new(state: State, setup: Setup, at: float) -> Acted:
    """Shorten the results that came since the last answer, as far as they are too large or there is no room for them."""
    if not setup.settings.compression.enabled:
        return Acted(state=state, events=())
    limits, new = limits_for(state, setup), _new(state)
    first = _cut_the_largest(state, setup, at, limits=limits, new=new)
    second = _make_room(first.state, setup, at, limits=limits, new=new)
    return Acted(state=second.state, events=(*first.events, *second.events))


def _cut_the_largest(state: State, setup: Setup, at: float, *, limits: Limits, new: range) -> Acted:
    """Shorten what is above the insertion limit; only where the request offers recall, or would not fit otherwise."""
    limit = _insertion_limit(limits, setup)
    if limit <= 0 or not (state.offers_recall or state.prompt > limits.wall):
        return Acted(state=state, events=())
    items, making = state.ledger.view.items, setup.making(offers_recall=state.offers_recall)
    most = int(limit / state.calibration.scale)
    proposal = shorten.propose(items, new, making, limit=most)
    if proposal is None:
        return Acted(state=state, events=())
    reason = Reason(code="too-large-at-the-door", facts={"limit": limit, "results": len(proposal.targets)})
    return _entered(state, shorten.apply(items, proposal, making, limit=most), reason, at)


def drop_pictures(state: State, setup: Setup, at: float) -> Steps[Acted]:
    """Put lines in place of older pictures, after a provider refused so many; those of the newest exchange only if there are no others."""
    yield Announce(ledger=state.ledger)
    items, making = state.ledger.view.items, setup.making(offers_recall=state.offers_recall)
    dropped = shorten.without_pictures(items, making)
    changed = [at for at, (old, now) in enumerate(zip(items, dropped, strict=True)) if old is not now]
    because = Reason(code="images-refused", facts={"messages": len(changed)})
    acted = _entered(state, dropped, because, at, mechanism="images")
    if not acted.events:
        return acted
    first = items[changed[0]]
    behind = scaled(sum(item.tokens for item in dropped[changed[0] :]), state.calibration.scale)
    event = replace(acted.events[0], disturbed=behind)
    after = 0 if isinstance(first, Summary) else first.number - 1
    # What was thought behind the pictures was thought behind a prefix that is gone.
    then = unbind(replace(acted.state, last=event), after=after)
    return Acted(state=then, events=(event,))


def _make_room(state: State, setup: Setup, at: float, *, limits: Limits, new: range) -> Acted:
    """Shorten results for which there is no room, if that suffices and the last compaction is only some turns ago.

    What was sent already stays as it is, and room is left for the turns until a compaction may come again. Where a single turn
    adds more than a fifth of all there may be, older messages go rather than what it brings.
    """
    past = state.past
    if state.prompt <= limits.most or not past.compactions or past.turns_since >= TURNS_BETWEEN:
        return Acted(state=state, events=())
    if scaled(sum(state.grown[-1:]), state.calibration.scale) > limits.most // TURNS_BETWEEN:
        return Acted(state=state, events=())
    items, making = state.ledger.view.items, setup.making(offers_recall=state.offers_recall)
    left = TURNS_BETWEEN - 1 - past.turns_since
    wanted = max(limits.roomy, limits.most - left * limits.growth)
    squeezed = shorten.squeeze(items, making, tokens=_counted_below(state, wanted), among=new)
    if tokens_of(squeezed) > _counted_below(state, limits.most):
        return Acted(state=state, events=())
    changed = sum(old is not now for old, now in zip(items, squeezed, strict=True))
    facts = {"results": changed, "prompt": state.prompt, "limit": limits.most, "turns": past.turns_since}
    return _entered(state, squeezed, Reason(code="no-room-at-the-door", facts={**facts}), at)


def _counted_below(state: State, prompt: int) -> int:
    """Return how many counted tokens the view's messages may have so that the prompt has at most `prompt` of the model's."""
    over = ceil((state.prompt - prompt) / state.calibration.scale)
    return state.ledger.view.tokens - over


def _entered(
    state: State, items: Sequence[Item], reason: Reason, at: float, *, mechanism: str = shorten.NAME
) -> Acted:
    """Return the session with these items instead, if they are smaller."""
    before = state.ledger.view.items
    entry = Compacted(at=at, mechanisms=(mechanism,), stands=stands_of(items))
    shortened = replace(state, ledger=state.ledger.append(entry))
    event = Compaction(
        at=at,
        model=state.model.name,
        mode="shorten" if mechanism == shorten.NAME else "prune",
        mechanisms=entry.mechanisms,
        because=reason,
        before=state.prompt,
        after=shortened.prompt,
        items_before=len(before),
        items_after=len(items),
        first_changed=first_difference(before, items),
        disturbed=0,
        phases=(Phase(mechanism=mechanism, removed=state.prompt - shortened.prompt),),
        number=next_number(state.ledger),
    )
    if event.reclaimed <= 0:
        return Acted(state=state, events=())
    totals = totals_after(state.totals, event, summaries=0)
    return Acted(state=replace(shortened, totals=totals, last=event), events=(event,))


def _insertion_limit(limits: Limits, setup: Setup) -> int:
    settings = setup.settings.tool_results
    return min(int(settings.insertion_limit_ratio * limits.context), settings.insertion_limit_tokens)


def _new(state: State) -> range:
    """Return the indexes of the items that no call of the model has seen."""
    items = state.ledger.view.items
    start = len(items)
    while (
        start > 0 and isinstance(items[start - 1], Original) and items[start - 1].message.role != "assistant"
    ):
        start -= 1
    return range(start, len(items))
