"""What calls cost a session in nano-dollars; None wherever a price is not known, which is never zero."""

from collections.abc import Iterable

from lowwater.economics.bill import cost_of, cost_of_all
from lowwater.engine.setup import Setup
from lowwater.engine.state import State
from lowwater.engine.work import Result, Work
from lowwater.values.registry import Registry
from lowwater.values.response import Response
from lowwater.values.summaries import Written

_PRICED = frozenset({"listed", "resold"})
"""How a model is found whose prices are its own."""


def both(one: int | None, other: int | None) -> int | None:
    """Return two costs together."""
    return None if one is None or other is None else one + other


def cost_of_answer(state: State, response: Response) -> int | None:
    """Return what the request under way cost, with the calls the provider made beside it."""
    if response.usage is None or response.prompt <= 0 or not response.list_price:
        return None
    call = state.call
    return cost_of_all(response.calls, call.model if call else state.model, call.at if call else None)


def cost_of_summaries(state: State, result: Result, setup: Setup, work: Work) -> int | None:
    """Return what the calls for summaries cost in a compaction, those that were of no use included."""
    if result.lost:
        return None
    models = (state.model, *setup.chain.models, *(model for model in setup.summary_models if model))
    return cost_of_written(result.written, Registry(models), work.at)


def prompts_of(summaries: Iterable[Written]) -> int:
    """Return how many tokens the prompts of the calls that wrote these had together, as far as providers reported them."""
    return sum(written.usage.prompt for written in summaries if written.usage is not None)


def cost_of_written(summaries: Iterable[Written], registry: Registry, at: float) -> int | None:
    """Return what the calls that wrote these cost, each at its model's prices; one without a model took no call."""
    total = 0
    for written in summaries:
        if not written.model and written.usage is None:
            continue
        found = registry.match(written.model)
        if written.usage is None or found.how not in _PRICED:
            return None
        cost = cost_of(written.usage, found.model, at)
        if cost is None:
            return None
        total += cost
    return total
