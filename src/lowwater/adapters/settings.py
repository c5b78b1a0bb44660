"""Loads the settings: defaults, lowwater.yaml, the environment and flags, from weakest to strongest."""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import inspect

from lowwater.adapters.files import read_text_file, read_value, read_yaml
from lowwater.errors import UnreadableFile
from lowwater.settings.coercion import did_you_mean, shown
from lowwater.settings.resolve import (
    PREFIX,
    Names,
    Resolved,
    Setting,
    SettingSource,
    catalogue,
    resolve,
    setting_named,
    settings_in,
)

FILE = "lowwater.yaml"
OTHER_VARIABLES = frozenset(
    {
        "LOWWATER_CONFIG",
        "LOWWATER_DASHBOARD_TOKEN",
        "LOWWATER_DEBUG",
        "LOWWATER_GATEWAY_KEYS",
        "LOWWATER_POSTGRES_BIN",
        "LOWWATER_SOURCE",
        "LOWWATER_STORE",
    }
)
"""Variables that begin like settings but are none."""


def load_settings(
    *,
    config: Path | None,
    env: Mapping[str, str],
    flags: Mapping[str, object],
    policies: Names = tuple,
) -> Resolved:
    """Return the effective settings; raise BadSetting or UnreadableFile with one sentence about what to change.

    `config` names the file; without it, it is looked for as `find_config` says. `flags` are values by the names of
    their settings; text among them is read as in the environment. `policies` returns those of installed packages.
    """
    file = config or find_config(env)
    layers = [file_source(file)] if file else []
    return resolve([*layers, environment_source(env), flag_source(flags)], policies=policies)


def find_config(env: Mapping[str, str]) -> Path | None:
    """Return the settings file to read: LOWWATER_CONFIG, ./lowwater.yaml, then the user's; None if there is none.

    Only the first counts: files are not merged.
    """
    if named := env.get("LOWWATER_CONFIG", "").strip():
        return Path(named)
    return next((path for path in (Path(FILE), user_config(env)) if _exists(path)), None)


def user_config(env: Mapping[str, str]) -> Path:
    """Return where the user's own settings file would be: under XDG_CONFIG_HOME, else ~/.config."""
    base = Path(env.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = _home(env) / ".config"
    return base / "lowwater" / FILE


def file_source(path: Path) -> SettingSource:
    """Return the values of the file at `path`, each with its line."""
    name = str(path).encode(errors="backslashreplace").decode()
    try:
        text = read_text_file(str(_expanded(path))).decode()
    except UnicodeDecodeError:
        raise UnreadableFile(f"{name} is not UTF-8: save it as UTF-8") from None
    document = read_yaml(text, name=name)
    lines = document.lines

    def place(path: str) -> str:
        return f"{name}:{lines[path]}" if path in lines else name

    values = settings_in(document.value, place=place)
    return SettingSource(
        name="file",
        values=values,
        places={setting.name: place(setting.path) for setting in catalogue() if setting.name in values},
    )


def environment_source(env: Mapping[str, str]) -> SettingSource:
    """Return the values of the LOWWATER_ variables.

    An empty one counts as not set; an unknown one gets a warning.
    """
    known = {setting.variable: setting for setting in catalogue()}
    given = [setting for name, setting in known.items() if env.get(name, "").strip()]
    others = [name for name in sorted(env) if name.startswith(PREFIX) and name not in OTHER_VARIABLES]
    return SettingSource(
        name="environment",
        values={setting.name: read_text(setting, env[setting.variable]) for setting in given},
        places={setting.name: setting.variable for setting in given},
        warnings=tuple(
            f"the environment variable {shown(name)} is no setting{did_you_mean(name, known, prefix=PREFIX)}"
            for name in others
            if name not in known
        ),
    )


def flag_source(flags: Mapping[str, object]) -> SettingSource:
    """Return the values of flags, given by the names of their settings."""
    values: dict[str, object] = {}
    places: dict[str, str] = {}
    for name, value in flags.items():
        setting = setting_named(name)
        values[setting.name] = read_text(setting, value) if isinstance(value, str) else value
        places[setting.name] = setting.flag
    return SettingSource(name="flag", values=values, places=places)


def read_text(setting: Setting, text: str) -> object:
    """Return the raw value that `text` spells for `setting`: words as they are, everything else as YAML.

    A list may be written without brackets, with commas or spaces between its words, and a fallback as the name
    of its model alone; 1 and 0 are true and false.
    """
    text = text.strip()
    if setting.nullable and text in {"null", "~"}:
        return None
    match setting.options[0]:
        case inspect.StrType() | inspect.LiteralType():
            return text
        case inspect.BoolType() if text in {"0", "1"}:
            return text == "1"
        case inspect.VarTupleType(item_type=item):
            value = read_value(text)
            return _listed(value, item) if isinstance(value, str) else value
        case _:
            return read_value(text)


def _listed(text: str, item: inspect.Type) -> list[object]:
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if isinstance(item, inspect.StructType):
        return [{item.fields[0].name: word} for word in words]
    return list(words)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise UnreadableFile(f"{path} names a home directory that cannot be found") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _home(env: Mapping[str, str]) -> Path:
    home = env.get("HOME")
    return Path(home) if home else _expanded(Path("~"))
