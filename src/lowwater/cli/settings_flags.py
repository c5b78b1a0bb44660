"""Gives a command one flag per setting and hands it the settings that hold."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from msgspec import inspect as types

from lowwater.adapters.settings import load_settings
from lowwater.cli.failing import say
from lowwater.cli.written import written
from lowwater.session.plugins import policy_names
from lowwater.settings.resolve import Setting, catalogue

TAKES = "settings"
"""The parameter by which a command receives its Resolved."""

NAME = "NAME"

NOTE = "Every setting is an option too, such as --max-view-tokens 60000: `lowwater config --help` lists them."

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Settings file to read instead of lowwater.yaml."),
]


def with_settings(command: Callable[..., None], *, listed: bool = False) -> Callable[..., None]:
    """Return `command` with `--config` and a flag for every setting; it receives a Resolved as `settings`.

    The flags are `listed` in the help of one command only: there are many, and they mean the same everywhere. What a
    person should know about the settings (clamped values, unknown variables) goes to standard error.
    """

    def run(*, config: Path | None, **given: object) -> None:
        flags = {setting.name: given.pop(setting.name) for setting in catalogue()}
        said = {name: value for name, value in flags.items() if value is not None}
        resolved = load_settings(config=config, env=os.environ, flags=said, policies=policy_names)
        for warning in resolved.warnings:
            say(f"warning: {warning}")
        command(**given, **{TAKES: resolved})

    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [
        *(
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own
            if parameter.name != TAKES
        ),
        _parameter("config", ConfigFile),
        *(_parameter(setting.name, _flag(setting, hidden=not listed)) for setting in catalogue()),
    ]
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what typer reads
    return run


def _parameter(name: str, annotation: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag(setting: Setting, *, hidden: bool) -> object:
    switch = isinstance(setting.options[0], types.BoolType)
    option = typer.Option(
        f"{setting.flag}/--no-{setting.flag[2:]}" if switch else setting.flag,
        help=_help(setting),
        metavar="" if switch else _metavar(setting),
        show_default=False,
        hidden=hidden,
        rich_help_panel="Settings: switches" if switch else f"Settings: {setting.section or 'fallbacks'}",
        autocompletion=lambda: list(setting.choices),
    )
    return Annotated[bool | None, option] if switch else Annotated[str | None, option]


def _help(setting: Setting) -> str:
    words = setting.choices if _placeholder(setting.options[0]) == NAME else ()
    choices = f" One of {', '.join(words)}." if words else ""
    return f"{setting.description}{choices} \\[{written(setting.default)}]"


def _metavar(setting: Setting) -> str:
    return "|".join(dict.fromkeys(_placeholder(option) for option in setting.options))


def _placeholder(kind: types.Type) -> str:
    match kind:
        case types.IntType():
            return "N"
        case types.FloatType():
            return f"{kind.ge}-{kind.le}"
        case types.LiteralType() if len(kind.values) <= 3:
            return "|".join(map(str, kind.values))
        case types.NoneType():
            return "null"
        case types.VarTupleType():
            return "LIST"
        case types.StructType():
            return "MAP"
        case _:
            return NAME
