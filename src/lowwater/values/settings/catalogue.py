"""What there is to set: every setting by its name, with the places it can be set in."""

from functools import cache

from msgspec import NODEFAULT, Struct, inspect, structs

from lowwater.errors import BadSetting
from lowwater.values.settings.sections import Settings
from lowwater.values.settings.words import did_you_mean, expected, shown

PREFIX = "LOWWATER_"


class Setting(Struct, frozen=True, kw_only=True):
    """One thing that can be set; its name is unique over all sections, and `section` is empty at the top level."""

    name: str
    section: str
    description: str
    default: object
    kind: inspect.Type

    @property
    def path(self) -> str:
        """Where it stands in lowwater.yaml: `compression.threshold`."""
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
    def options(self) -> tuple[inspect.Type, ...]:
        """The types it takes, one by one."""
        return self.kind.types if isinstance(self.kind, inspect.UnionType) else (self.kind,)

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it takes, where it takes only some; those that an `is_open` one takes by itself."""
        literals = [option for option in self.options if isinstance(option, inspect.LiteralType)]
        return tuple(str(value) for literal in literals for value in literal.values)

    @property
    def is_open(self) -> bool:
        """It takes other words too, if a package that is installed adds them."""
        return bool(self.choices) and any(isinstance(option, inspect.StrType) for option in self.options)

    @property
    def nullable(self) -> bool:
        """It can be null."""
        return any(isinstance(option, inspect.NoneType) for option in self.options)


@cache
def catalogue() -> tuple[Setting, ...]:
    """Return all settings, section by section, in the order of their definition."""
    found: list[Setting] = []
    for field in structs.fields(Settings):
        kind = inspect.type_info(field.type)
        if isinstance(kind, inspect.StructType):
            found.extend(_setting(inner, field.name) for inner in structs.fields(kind.cls))
        else:
            found.append(_setting(field, ""))
    return tuple(found)


def sections() -> tuple[str, ...]:
    """Return the names of the sections, in order."""
    return tuple(dict.fromkeys(setting.section for setting in catalogue() if setting.section))


def setting_named(name: str) -> Setting:
    """Return the setting with this name or path, or raise BadSetting with the name most like it."""
    for setting in catalogue():
        if name in {setting.name, setting.path}:
            return setting
    hint = did_you_mean(name.rpartition(".")[2], [setting.name for setting in catalogue()])
    raise BadSetting(f"there is no setting {shown(name)}{hint}")


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
