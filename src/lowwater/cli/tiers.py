"""The current model of each line that a provider sells, told by names, versions and prices alone."""

import re
from collections.abc import Iterable

from msgspec import Struct

from lowwater.core.models.model import Model, Prices
from lowwater.core.models.names import is_suffix

_VERSIONED = re.compile(r"([a-z]*)(\d+(?:\.\d+)*)[a-z]?")
_STAGES = frozenset({"preview", "latest"})
_DATES = 1_000
"""From here on a number is a date and no version."""


class Line(Struct, frozen=True, kw_only=True):
    """What models of one tier have in common, and which version one of them is."""

    provider: str
    words: tuple[str, ...]
    version: tuple[int, ...]


def line_of(model: Model) -> Line:
    """Return a model's line: its name without its version."""
    words: list[str] = []
    version: list[int] = []
    for word in re.split(r"[-/]", model.name):
        versioned = _VERSIONED.fullmatch(word)
        if versioned:
            version += map(int, versioned[2].split("."))
        spelled = versioned[1] if versioned else word
        if spelled and spelled not in _STAGES:
            words.append(spelled)
    return Line(provider=model.provider, words=tuple(words), version=tuple(version))


def current(models: Iterable[Model]) -> list[Model]:
    """Return the newest model of each line, in the order of `models`, unless something newer took its place.

    Left out are dated copies of a listed model, models of another seller at their maker's prices, and lines whose provider
    sells a newer generation (the first number of a version) that costs no more for anything.
    """
    listed = list(models)
    newest: dict[tuple[str, tuple[str, ...]], Model] = {}
    for model in listed:
        line = line_of(model)
        known = newest.get((line.provider, line.words))
        is_newer = known is None or line.version > line_of(known).version
        if is_newer and not _is_copy(model, listed):
            newest[line.provider, line.words] = model
    kept = [model for model in listed if any(model is each for each in newest.values())]
    return [model for model in kept if not any(_supersedes(other, model) for other in kept)]


def _is_copy(model: Model, listed: Iterable[Model]) -> bool:
    bare = model.name.rpartition("/")[2]
    return any(
        other is not model
        and (
            (model.name.startswith(other.name) and is_suffix(model.name[len(other.name) :]))
            or (bare != model.name and other.name == bare and other.prices == model.prices)
        )
        for other in listed
    )


def _supersedes(newer: Model, older: Model) -> bool:
    new, old = line_of(newer), line_of(older)
    if new.provider != old.provider or not (new.version and old.version):
        return False
    if not old.version[0] < new.version[0] < _DATES:
        return False
    return newer.prices is not None and older.prices is not None and _no_dearer(newer.prices, older.prices)


def _no_dearer(one: Prices, other: Prices) -> bool:
    return (
        one.input <= other.input
        and one.cache_read <= other.cache_read
        and one.cache_write <= other.cache_write
        and one.output <= other.output
    )
