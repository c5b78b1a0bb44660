"""Price sheets for courses from the registry of models."""

from collections.abc import Mapping
from math import log

from lowwater.core.cache.belief import HALF_LIFE, HALF_LIFE_ON_DISK
from lowwater.core.models.model import Model, Units
from lowwater.core.models.registry import Registry
from lowwater.errors import BadInput
from lowwater.replay.course import Sheet

SHEETS: Mapping[str, str] = {
    "anthropic-r10": "claude-opus-4-5",
    "anthropic-r05": "claude-opus-5-5",
    "openai-30m": "gpt-5.6-sol",
    "deepseek": "deepseek-flash",
}
"""The four price sheets that replays are compared on, each the model whose prices and cache rules it is."""

ASSUMED = "claude-opus-5-5"
"""What a session is charged by that names no model, or one whose prices are not known."""

_RESERVED = 20_000
_OTHER_INPUT, _OTHER_OUTPUT = 5, 1
"""Another model writes summaries at a fifth of the input price, and at the input price for output."""


def model_named(name: str, registry: Registry) -> Model:
    """Return the model of a sheet or of this name, or raise BadInput if no price of it is known."""
    model = registry.find(SHEETS.get(name, name))
    if model.prices is None:
        raise BadInput(f"no price is known for {name!r}, so that nothing can be charged for it")
    return model


def other_beside(model: Model, registry: Registry) -> Model | None:
    """Return the model of the same provider that comes nearest to what courses take another model to cost, if one does."""
    if model.prices is None:
        return None
    wanted = model.prices.input / _OTHER_INPUT
    cheaper = [
        other
        for other in registry.models
        if other.provider == model.provider and other.prices and other.prices.input < model.prices.input
    ]
    return min(cheaper, key=lambda other: abs(log(_input(other) / wanted)), default=None)


def _input(model: Model) -> int:
    assert model.prices is not None
    return model.prices.input


def sheet_of(model: Model) -> Sheet:
    """Return what a course under a model is charged: its default lifetime, without cliffs and other hours' prices.

    Where no lifetime is published a prefix is taken to live until it is as likely gone as not.
    """
    prices = model.prices
    assert prices is not None
    half_life = HALF_LIFE_ON_DISK if isinstance(model.cache.matching, Units) else HALF_LIFE
    return Sheet(
        name=model.name,
        input=prices.input,
        read=prices.cache_read,
        write=prices.cache_write,
        output=prices.output,
        other_input=prices.input // _OTHER_INPUT,
        other_output=prices.input // _OTHER_OUTPUT,
        ttl=half_life if model.cache.ttl is None else model.cache.ttl,
        window=model.context_length,
        reserved=min(_RESERVED, model.context_length // 4),
    )
