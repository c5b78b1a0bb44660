"""Very large tool results are shortened before they first enter the prompt, so that no later rewrite is needed (SPEC M)."""

from msgspec.structs import replace

from lowwater.compact import shorten
from lowwater.engine.commit import Acted, next_number, totals_after
from lowwater.engine.setup import Setup
from lowwater.engine.situate import limits_for
from lowwater.engine.state import State
from lowwater.values.decision import Reason
from lowwater.values.entries import Compacted
from lowwater.values.events import Compaction, Phase
from lowwater.values.limits import Limits
from lowwater.values.view import Original, stands_of


def shorten_new(state: State, setup: Setup, at: float) -> Acted:
    """Shorten the results that came since the last answer and are above the insertion limit.

    Only where the request offers recall, or the prompt would not fit otherwise.
    """
    limits = limits_for(state, setup)
    limit = _insertion_limit(limits, setup)
    enabled = setup.settings.compression.enabled
    if not enabled or limit <= 0 or not (state.offers_recall or state.prompt > limits.wall):
        return Acted(state=state, events=())
    items = state.ledger.view.items
    start = _first_new(state)
    counted = int(limit / state.calibration.scale)
    making = setup.making(offers_recall=state.offers_recall)
    proposal = shorten.propose(items, range(start, len(items)), making, limit=counted)
    if proposal is None:
        return Acted(state=state, events=())
    shorter = shorten.apply(items, proposal, making, limit=counted)
    entry = Compacted(at=at, mechanisms=(shorten.NAME,), stands=stands_of(shorter))
    shortened = replace(state, ledger=state.ledger.append(entry))
    event = Compaction(
        at=at,
        model=state.model.name,
        mode="shorten",
        mechanisms=entry.mechanisms,
        because=Reason(
            code="too-large-at-the-door", facts={"limit": limit, "results": len(proposal.targets)}
        ),
        before=state.prompt,
        after=shortened.prompt,
        items_before=len(items),
        items_after=len(shorter),
        first_changed=proposal.first_changed,
        disturbed=0,
        phases=(Phase(mechanism=shorten.NAME, removed=state.prompt - shortened.prompt),),
        number=next_number(state.ledger),
    )
    if event.reclaimed <= 0:
        return Acted(state=state, events=())
    totals = totals_after(state.totals, event, summaries=0)
    return Acted(state=replace(shortened, totals=totals, last=event), events=(event,))


def _insertion_limit(limits: Limits, setup: Setup) -> int:
    settings = setup.settings.tool_results
    return min(int(settings.insertion_limit_ratio * limits.context), settings.insertion_limit_tokens)


def _first_new(state: State) -> int:
    """Return the index of the first item that no call of the model has seen."""
    items = state.ledger.view.items
    start = len(items)
    while (
        start > 0 and isinstance(items[start - 1], Original) and items[start - 1].message.role != "assistant"
    ):
        start -= 1
    return start
