"""Checks of what a caller of the library passes: a mistake gets one sentence, before anything is done or stored."""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite

import msgspec
from msgspec import Raw

from lowwater.core.models.registry import NO_PRICE, Registry
from lowwater.core.strict_json import write_json
from lowwater.errors import BadInput, BadSetting
from lowwater.protocols import Clock
from lowwater.settings import Settings
from lowwater.settings.fitting import did_you_mean, shown
from lowwater.settings.resolve import settings_in

_KINDS = {b'"': "text", b"[": "list", b"{": "mapping", b"n": "null"}


def require_text(value: object, name: str) -> str:
    """Return `value` if it is text that says something; else raise BadInput."""
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{name} must be text, not {_shown(value)}")
    return value


def require_count(value: object, name: str, *, least: int = 1) -> int:
    """Return `value` if it is a whole number of at least `least`; else raise BadInput."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadInput(f"{name} must be a whole number of at least {least}, not {_shown(value)}")
    return value


def require_place(value: object, name: str) -> str | int:
    """Return `value` if it can name a checkpoint or a ledger position; else raise BadInput."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a checkpoint's name or a ledger position, not {_shown(value)}")
    return value


def require_list(value: object, name: str, *, of: str) -> None:
    """Raise BadSetting unless `value` is a list or another iterable; a single text is a common mistake for one."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise BadSetting(f"{name} must be a list of {of}, not {_shown(value)}")


def require_methods(values: Iterable[object], name: str, *, method: str) -> None:
    """Raise BadSetting unless each of `values` has `method`."""
    for value in values:
        if not callable(getattr(value, method, None)):
            raise BadSetting(f"each of {name} needs a method `{method}`, and {_shown(value)} has none")


def require_json(value: object, name: str, *kinds: str) -> bytes:
    """Return `value` as JSON if that is one of `kinds` (text, list, mapping); else raise BadInput."""
    written = write_json(value)
    if _KINDS.get(written[:1]) not in kinds:
        raise BadInput(f"{name} must be {_one_of(kinds)}, not {_shown(value)}")
    return written


def require_objects(value: object, name: str, *, each: str) -> bytes:
    """Return `value` as JSON if that is a list of objects; else raise BadInput."""
    written = require_json(value, name, "list")
    try:
        msgspec.json.decode(written, type=list[dict[str, Raw]])
    except msgspec.ValidationError:
        raise BadInput(f"{name} must be a list of objects, {each}") from None
    return written


def settings_given(given: object) -> Settings:
    """Return settings given as such or, as in lowwater.yaml, as a mapping of sections; none given are the defaults."""
    if given is None:
        return Settings()
    if isinstance(given, Settings):
        return given
    if not isinstance(given, Mapping):
        raise BadSetting(f"settings must be a Settings object or a mapping of sections, not {_shown(given)}")
    settings_in(given, place=lambda path: f"settings {path}".strip())
    return Settings(**{name: section for name, section in given.items() if section is not None})


def doubts_about(model: str, registry: Registry, *, base_url: str = "") -> str:
    """Return a sentence about a model's name that is probably a mistake, since nothing is known of its prices.

    A model at a URL of the caller's own may well have no price; it is doubted only if its name is nearly a known one.
    """
    match = registry.match(model)
    if NO_PRICE not in match.model.assumptions:
        return ""
    known = [name for each in registry.models for name in (each.name, *each.aliases)]
    hint = did_you_mean(match.spelling.name, known)
    if base_url and not hint:
        return ""
    return f"no price is known for the model {shown(model)}, so there will be no dollar figures{hint}"


class CheckedClock:
    """A caller's clock whose time is checked: the arithmetic of lifetimes needs a finite number of seconds."""

    def __init__(self, clock: Clock) -> None:
        if not callable(getattr(clock, "now", None)):
            raise BadSetting(f"a {type(clock).__name__} is no clock: it needs a method `now`")
        self._now: Callable[[], float] = clock.now

    def now(self) -> float:
        """Return seconds since the epoch, or raise BadSetting."""
        at = self._now()
        if isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at):
            raise BadSetting(f"the clock must give seconds since 1970 as a finite number, not {_shown(at)}")
        return at


def _shown(value: object) -> str:
    """Write `value` shortly; text in quotes, so that "100" is not taken for 100."""
    return repr(shown(value)) if isinstance(value, str) else shown(value)


def _one_of(kinds: tuple[str, ...]) -> str:
    named = {"text": "text", "list": "a list", "mapping": "a mapping"}
    return " or ".join(named[kind] for kind in kinds)
