"""Effective settings: layers of raw values laid over each other, each value with where it came from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lowwater.errors import BadSetting
from lowwater.values.settings.catalogue import Setting, catalogue, sections, setting_named
from lowwater.values.settings.fit import at, fit
from lowwater.values.settings.sections import Settings
from lowwater.values.settings.words import did_you_mean, shown

DEFAULT = "default"

Names = Callable[[], Iterable[str]]
"""Tells the names that installed packages add to ours; it is asked only about a name that is not ours."""


class Source(Struct, frozen=True, kw_only=True):
    """One layer of raw values by the names of their settings; `places` says where each was written."""

    name: str
    values: Mapping[str, object]
    places: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()


class Effective(Struct, frozen=True, kw_only=True):
    """A setting's value, which source it came from, where it was written, and what it was clamped from."""

    setting: Setting
    value: Any
    source: str = DEFAULT
    place: str = ""
    clamped_from: str | None = None


class Resolved(Struct, frozen=True, kw_only=True):
    """The settings that hold, each with where it came from, and what a person should be told about them."""

    settings: Settings
    effective: tuple[Effective, ...]
    warnings: tuple[str, ...] = ()

    def of(self, name: str) -> Effective:
        """Return the setting with this name or path, or raise BadSetting with the name most like it."""
        wanted = setting_named(name)
        return next(found for found in self.effective if found.setting.name == wanted.name)


def resolve(sources: Sequence[Source], *, policies: Names = tuple) -> Resolved:
    """Lay `sources` over the defaults, weakest first, and return what holds; raise BadSetting for nonsense.

    A value is checked even where a stronger one covers it, so that a mistake does not wait for its day. `policies` are those
    of installed packages.
    """
    effective = {setting.name: Effective(setting=setting, value=setting.default) for setting in catalogue()}
    warnings: list[str] = []
    for source in sources:
        warnings.extend(source.warnings)
        for name, raw in source.values.items():
            chosen = _chosen(setting_named(name), raw, source, warnings, policies)
            effective[chosen.setting.name] = chosen
    found = tuple(effective.values())
    return Resolved(settings=_settings(found), effective=found, warnings=tuple(warnings))


def _chosen(setting: Setting, raw: object, source: Source, warnings: list[str], policies: Names) -> Effective:
    place = source.places.get(setting.name, "")
    fitted = fit(raw, setting.kind, name=setting.name, place=place)
    if setting.is_open and fitted.value not in setting.choices:
        _refuse_unknown(setting, fitted.value, place, tuple(policies()))
    for clamp in fitted.clamps:
        subject = at(setting.name + clamp.inside, place)
        warnings.append(f"{subject} is out of range: {clamp.given} became {clamp.used}")
    clamped = ", ".join(f"{clamp.inside.lstrip('.')} {clamp.given}".strip() for clamp in fitted.clamps)
    return Effective(
        setting=setting,
        value=fitted.value,
        source=source.name,
        place=place,
        clamped_from=clamped or None,
    )


def _refuse_unknown(setting: Setting, value: object, place: str, others: Sequence[str]) -> None:
    if value not in others:
        known = f"one of {', '.join((*setting.choices, *others))}"
        hint = did_you_mean(value, (*setting.choices, *others))
        raise BadSetting(f"{at(setting.name, place)} must be {known}, not {shown(value)}{hint}")


def _settings(effective: Sequence[Effective]) -> Settings:
    values: dict[str, dict[str, Any]] = {name: {} for name in ("", *sections())}
    for found in effective:
        values[found.setting.section][found.setting.name] = found.value
    defaults = Settings()
    built = {name: type(getattr(defaults, name))(**values[name]) for name in sections()}
    return Settings(**built, **values[""])
