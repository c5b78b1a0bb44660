"""What all commands share: exit codes and error messages, Ctrl-C, and an option for every setting."""

import inspect
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from msgspec import inspect as types
from typer.core import TyperCommand, TyperGroup

from lowwater.adapters.settings import load_settings
from lowwater.cli.wording import setting_text
from lowwater.errors import LowwaterError, defect
from lowwater.session.plugins import policy_names
from lowwater.settings.resolve import Setting, catalogue

OK = 0
FAILED = 1
DEFECT = 70
INTERRUPTED = 130
SETTINGS_PARAMETER = "settings"
"""The parameter through which a command receives its Resolved settings."""
NAME_PLACEHOLDER = "NAME"
NOTE = "Every setting is an option too, such as --max-view-tokens 60000: `lowwater config --help` lists them."
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Settings file to read instead of lowwater.yaml."),
]


class Command(TyperCommand):
    """A command whose help does not label its switches `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        """Return the parameters, with the labels of switches removed."""
        return _unlabelled(super().get_params(ctx))


class Group(TyperGroup):
    """A group whose help does not label its switches `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        """Return the parameters, with the labels of switches removed."""
        return _unlabelled(super().get_params(ctx))


def _unlabelled(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def say(text: str) -> None:
    """Print a message on standard error, on one line."""
    sys.stderr.write(f"lowwater: {' '.join(text.split())}\n")


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Yield a list to which Ctrl-C appends, in addition to raising KeyboardInterrupt.

    Python drops an exception raised inside a finalizer or a callback of an extension module, and an exception raised during
    cleanup can replace it; the list still shows that Ctrl-C was pressed.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def run(command: Callable[[], object]) -> int:
    """Run `command` and return the exit code of the process; every error is printed as one sentence."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _exit_code(command)
        sys.stdout.flush()
    except LowwaterError as error:
        say(str(error))
        return FAILED
    except BrokenPipeError:
        _forget_stdout()
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost handler: nobody is left to handle it
        return _defect(error)
    return code


def _exit_code(command: Callable[[], object]) -> int:
    try:
        command()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else OK if leaving.code is None else FAILED
    return OK


def _forget_stdout() -> None:
    # The reader closed the pipe: buffered output must not be flushed when the interpreter exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _defect(error: Exception) -> int:
    if os.environ.get("LOWWATER_DEBUG"):
        traceback.print_exception(error)
    say(f"{defect(error)}; please report it with the traceback that LOWWATER_DEBUG=1 shows")
    return DEFECT


def with_settings(command: Callable[..., None], *, listed: bool = False) -> Callable[..., None]:
    """Return `command` with `--config` and a flag for every setting; it receives a Resolved as `settings`.

    The flags are `listed` in the help of one command only: there are many, and they mean the same everywhere. Warnings
    about the settings (clamped values, unknown variables) go to standard error.
    """

    def run(*, config: Path | None, **given: object) -> None:
        flags = {setting.name: given.pop(setting.name) for setting in catalogue()}
        said = {name: value for name, value in flags.items() if value is not None}
        resolved = load_settings(config=config, env=os.environ, flags=said, policies=policy_names)
        for warning in resolved.warnings:
            say(f"warning: {warning}")
        command(**given, **{SETTINGS_PARAMETER: resolved})

    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [
        *(
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own
            if parameter.name != SETTINGS_PARAMETER
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
        rich_help_panel=_panel(setting, switch=switch),
        autocompletion=lambda: list(setting.choices),
    )
    return Annotated[bool | None, option] if switch else Annotated[str | None, option]


def _panel(setting: Setting, *, switch: bool) -> str:
    """Return the panel that lists a flag; each aligns its own columns, so that long flags take no room from others."""
    kind = "switches" if switch else setting.section or "fallbacks"
    return f"Settings for experts: {kind}" if setting.is_expert else f"Settings: {kind}"


def _help(setting: Setting) -> str:
    words = setting.choices if _placeholder(setting.options[0]) == NAME_PLACEHOLDER else ()
    choices = f" One of {', '.join(words)}." if words else ""
    return f"{setting.description}{choices} \\[{setting_text(setting.default)}]"


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
            return NAME_PLACEHOLDER
