"""The settings as a JSON Schema, for editors and for programs that write lowwater.yaml."""

from collections.abc import Iterable
from typing import Any, get_args

import msgspec
from msgspec import inspect

from lowwater.settings import PolicyName, Settings
from lowwater.settings.resolve import Setting, catalogue


def settings_schema(*, policies: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of lowwater.yaml: types, ranges, defaults and descriptions of every setting.

    For user interfaces each setting also has a `title`, how to show it (`x-widget`), its unit (`x-unit`), position
    (`x-order`) and whether it is for experts (`x-expert`), and the variable and flag that set it (`x-variable`, `x-flag`). `policies` are those of installed packages.
    """
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lowwater.yaml",
        **msgspec.json.schema(Settings),
    }
    for setting in catalogue():
        _add_hints(schema, setting)
    policy = schema["$defs"]["CompressionSettings"]["properties"]["policy"]
    del policy["anyOf"]
    policy["enum"] = [*get_args(PolicyName), *policies]
    # Defaults are Python tuples, which validators do not accept as arrays.
    return msgspec.json.decode(msgspec.json.encode(schema), type=dict[str, Any])


def _add_hints(schema: dict[str, Any], setting: Setting) -> None:
    """Add to a setting's schema what a user interface needs to show it."""
    section = f"{type(getattr(Settings(), setting.section)).__name__}" if setting.section else "Settings"
    hints: dict[str, Any] = {
        "title": setting.name.replace("_", " ").capitalize(),
        "x-widget": _widget(setting),
        "x-order": catalogue().index(setting),
        "x-expert": setting.is_expert,
        "x-variable": setting.variable,
        "x-flag": setting.flag,
    }
    if unit := _unit(setting):
        hints["x-unit"] = unit
    schema["$defs"][section]["properties"][setting.name].update(hints)


def _widget(setting: Setting) -> str:
    """Return the control for a setting: switch, choice, slider, number, list, group or text."""
    if setting.choices:
        return "choice"
    match next(option for option in setting.options if not isinstance(option, inspect.NoneType)):
        case inspect.BoolType():
            return "switch"
        case inspect.FloatType():
            return "slider"
        case inspect.IntType():
            return "number"
        case inspect.VarTupleType():
            return "list"
        case inspect.StructType():
            return "group"
        case _:
            return "text"


def _unit(setting: Setting) -> str:
    if setting.name.endswith("_tokens"):
        return "tokens"
    return "characters" if setting.name.endswith("_chars") else ""
