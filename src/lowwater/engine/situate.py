"""From a session's state to the numbers a policy decides by."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.compact import shorten
from lowwater.compact.propose import EVERYTHING, Asked, propose, survey
from lowwater.decide.auto import auto_threshold
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.values.limits import Limits, derive_limits
from lowwater.values.situation import Situation

_AT_THE_WALL = frozenset({EVERYTHING, shorten.NAME})


class Situated(Struct, frozen=True, kw_only=True):
    """The situation, and what its proposals are worked out from."""

    now: Situation
    asked: Asked


def situate(state: State, setup: Setup, at: float, *, forced: bool = False) -> Situated:
    """Return what there is to decide by, without the mechanisms' offers."""
    limits = limits_for(state, setup)
    view = state.ledger.view
    scale = state.calibration.scale
    asked = Asked(
        items=view.items,
        making=setup.making(offers_recall=state.offers_recall),
        limits=limits,
        settings=setup.settings,
        scale=scale,
        system_in_preamble=bool(view.system),
    )
    now = Situation(
        at=at,
        prompt=state.prompt,
        messages=len(view.items),
        outside_tail=round(scale * survey(asked).outside_tail),
        limits=limits,
        scale=scale,
        forced=forced,
        enabled=setup.settings.compression.enabled,
        growth=state.growth,
        past=state.past,
    )
    return Situated(now=now, asked=asked)


def with_offers(situated: Situated) -> Situated:
    """Return the situation with everything the mechanisms offer; what reaches into the tail only at the wall."""
    now = situated.now
    offers = propose(situated.asked).proposals
    if now.prompt < now.limits.wall:
        offers = tuple(offer for offer in offers if offer.mechanism not in _AT_THE_WALL)
    return replace(situated, now=replace(now, proposals=offers))


def limits_for(state: State, setup: Setup) -> Limits:
    """Return the limits of the model in use, or of the smallest of its chain where the policy plans for that (SPEC G)."""
    preset = setup.preset
    others = [model.context_length for model in setup.chain.models] if setup.policy.smallest_context else []
    context = min([state.model.context_length, *others])
    compression = setup.settings.compression
    return derive_limits(
        context,
        compression,
        max_output=state.model.max_output,
        max_tokens=state.max_tokens,
        auto_threshold=auto_threshold(
            compression,
            context=context,
            growth=state.growth,
            turns=state.growths,
            tool_share=_tool_share(state) if compression.threshold == "auto" else 0.0,
            head=round(state.calibration.scale * state.ledger.view.preamble_tokens),
        ),
        floor=preset.threshold_floor,
    )


def _tool_share(state: State) -> float:
    items = state.ledger.view.items
    whole = state.ledger.view.tokens or 1
    return sum(item.tokens for item in items if item.message.results) / whole
