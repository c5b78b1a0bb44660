"""Resolving raw values from files, environment and flags to the effective settings, each with its source."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import NODEFAULT, Struct, inspect, structs

from lowwater.errors import BadSetting
from lowwater.settings import EVERYDAY, Settings
from lowwater.settings.coercion import at, did_you_mean, expected, fit, shown

PREFIX = "LOWWATER_"
DEFAULT = "default"

Names = Callable[[], Iterable[str]]
"""Returns the names that installed packages add; it is called only for a name that is not Lowwater's own."""


class Setting(Struct, frozen=True, kw_only=True):
    """A setting; its name is unique across all sections, and `section` is empty at the top level."""

    name: str
    section: str
    description: str
    default: object
    kind: inspect.Type

    @property
    def path(self) -> str:
        """Its path in lowwater.yaml: `compression.threshold`."""
        return f"{self.section}.{self.name}" if self.section else self.name

    @property
    def variable(self) -> str:
        """The environment variable that sets it: `LOWWATER_PROTECT_LAST_N`."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The flag that sets it: `--protect-last-n`."""
        return "--" + self.name.replace("_", "-")

    @property
    def expected(self) -> str:
        """What values it takes, in words."""
        return expected(self.kind)

    @property
    def is_expert(self) -> bool:
        """Whether it is listed apart, because hardly anybody has a reason to change it."""
        return self.name not in EVERYDAY

    @property
    def options(self) -> tuple[inspect.Type, ...]:
        """The types it takes."""
        return self.kind.types if isinstance(self.kind, inspect.UnionType) else (self.kind,)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it takes, if it takes only certain words; without those that installed packages add (`is_open`)."""
        literals = [option for option in self.options if isinstance(option, inspect.LiteralType)]
        return tuple(str(value) for literal in literals for value in literal.values)

    @property
    def is_open(self) -> bool:
        """Whether it takes further words that installed packages add."""
        return bool(self.choices) and any(isinstance(option, inspect.StrType) for option in self.options)

    @property
    def nullable(self) -> bool:
        """Whether it can be null."""
        return any(isinstance(option, inspect.NoneType) for option in self.options)


@cache
def catalogue() -> tuple[Setting, ...]:
    """Return all settings, by section, in the order of their definition."""
    found: list[Setting] = []
    for field in structs.fields(Settings):
        kind = inspect.type_info(field.type)
        if isinstance(kind, inspect.StructType):
            found.extend(_setting(inner, field.name) for inner in structs.fields(kind.cls))
        else:
            found.append(_setting(field, ""))
    return tuple(found)


def _setting(field: structs.FieldInfo, section: str) -> Setting:
    kind = inspect.type_info(field.type)
    assert isinstance(kind, inspect.Metadata), f"{field.name} has no description"
    assert field.default is not NODEFAULT, f"{field.name} has no default"
    extra = kind.extra_json_schema or {}
    return Setting(
        name=field.name,
        section=section,
        description=extra["description"],
        default=field.default,
        kind=kind.type,
    )


def sections() -> tuple[str, ...]:
    """Return the names of the sections, in order."""
    return tuple(dict.fromkeys(setting.section for setting in catalogue() if setting.section))


def setting_named(name: str) -> Setting:
    """Return the setting with this name or path, or raise BadSetting, which suggests the most similar name."""
    for setting in catalogue():
        if name in {setting.name, setting.path}:
            return setting
    hint = did_you_mean(name.rpartition(".")[2], [setting.name for setting in catalogue()])
    raise BadSetting(f"there is no setting {shown(name)}{hint}")


class SettingSource(Struct, frozen=True, kw_only=True):
    """One layer of raw values by setting name; `places` tells where each was written."""

    name: str
    values: Mapping[str, object]
    places: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()


class Effective(Struct, frozen=True, kw_only=True):
    """A setting's effective value, its source, where it was written, and the value before clamping."""

    setting: Setting
    value: Any
    source: str = DEFAULT
    place: str = ""
    clamped_from: str | None = None


class Resolved(Struct, frozen=True, kw_only=True):
    """The effective settings, each with its source, and the warnings to show."""

    settings: Settings
    effective: tuple[Effective, ...]
    warnings: tuple[str, ...] = ()

    def of(self, name: str) -> Effective:
        """Return the setting with this name or path, or raise BadSetting, which suggests the most similar name."""
        wanted = setting_named(name)
        return next(found for found in self.effective if found.setting.name == wanted.name)


def resolve(sources: Sequence[SettingSource], *, policies: Names = tuple) -> Resolved:
    """Apply `sources` to the defaults, lowest precedence first, and return the result; raise BadSetting for an invalid value.

    A value is checked even if a later source overrides it, so that mistakes are found early. `policies` returns the names
    of installed packages' policies.
    """
    effective = {setting.name: Effective(setting=setting, value=setting.default) for setting in catalogue()}
    warnings: list[str] = []
    for source in sources:
        warnings.extend(source.warnings)
        for name, raw in source.values.items():
            found = _effective(setting_named(name), raw, source, warnings, policies)
            effective[found.setting.name] = found
    values = tuple(effective.values())
    return Resolved(settings=_settings(values), effective=values, warnings=tuple(warnings))


def _effective(
    setting: Setting, raw: object, source: SettingSource, warnings: list[str], policies: Names
) -> Effective:
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


def settings_in(document: object, *, place: Callable[[str], str]) -> dict[str, object]:
    """Return the raw values in `document` by the names of their settings; raise BadSetting for an unknown key.

    `place` returns where a path such as `compression.threshold` is written, for errors. An empty section is ignored.
    """
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise BadSetting(f"{place('')} must hold sections such as `compression:`, not {shown(document)}")
    found: dict[str, object] = {}
    for key, value in document.items():
        if key not in sections():
            found[_name_of(shown(key), place)] = value
        elif isinstance(value, Mapping):
            found |= {_name_of(f"{key}.{shown(name)}", place): inner for name, inner in value.items()}
        elif value is not None:
            raise BadSetting(f"{place(key)}: {key} must hold settings, not {shown(value)}")
    return found


def _name_of(path: str, place: Callable[[str], str]) -> str:
    name = path.rpartition(".")[2]
    for setting in catalogue():
        if setting.path == path:
            return name
    for setting in catalogue():
        if setting.name == name:
            hint = (
                f"; it belongs under {setting.section}" if setting.section else "; it belongs to no section"
            )
            break
    else:
        hint = did_you_mean(name, [*sections(), *(setting.name for setting in catalogue())])
    raise BadSetting(f"{place(path)}: there is no setting {path}{hint}")
