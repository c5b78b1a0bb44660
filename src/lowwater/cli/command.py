"""What all commands share: exit codes and error messages, Ctrl-C, and the options of many commands."""

import inspect
import io
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import typer
from msgspec import inspect as types
from typer.core import TyperCommand, TyperGroup

from lowwater.adapters.settings import load_settings
from lowwater.cli.wording import on_one_line, setting_text
from lowwater.errors import BadInput, LowwaterError, defect
from lowwater.session.plugins import policy_names
from lowwater.settings.resolve import Setting, catalogue

OK = 0
FAILED = 1
DEFECT = 70
INTERRUPTED = 130
SETTINGS_PARAMETER = "settings"
"""The parameter through which a command receives its Resolved settings."""
MOVED = {"explain": "inspect --explain", "efficiency": "status --all", "mcp": "serve --mcp"}
"""Commands that became options."""
NAME_PLACEHOLDER = "NAME"
NOTE = "Every setting is an option too: `lowwater config --help` lists them."
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")]
Since = Annotated[
    str, typer.Option(metavar="WHEN", help="Only what happened since then: 30d, 12h, or a day: 2026-11-01.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Used instead of lowwater.yaml."),
]
IdleOption = Annotated[
    Literal["off", "compact", "keep-warm", "auto"],
    typer.Option(metavar="MODE", show_default=False, help="Pauses: off|compact|keep-warm|auto"),
]
IdleLimitOption = Annotated[
    float,
    typer.Option(metavar="USD", show_default=False, help="Limit per session; default 1."),
]


_PLAINLY = (
    (re.compile(r"Value error, (.*) is not one of (.*)\."), r"\1 is none of \2"),
    (re.compile(r"Input should be a valid integer.*"), "it has to be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "it has to be a number"),
    (re.compile(r"Input should be less than or equal to (.*)"), r"it can be at most \1"),
    (re.compile(r"Input should be greater than or equal to (.*)"), r"it has to be at least \1"),
)
"""What pydantic says of a bad value, which typer prints as it is, and the same for people."""


class Command(TyperCommand):
    """A command whose help does not label its switches `<bool>`, and which says plainly what is wrong with a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer keeps the type private
        """Parse; a bad value is told in a sentence."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            for said, plainly in _PLAINLY:
                error.message = said.sub(plainly, error.message)
            raise

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        """Return the parameters, with the labels of switches removed."""
        return _unlabelled(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands; whoever mistypes one is told the nearest, also if it is a subcommand of another group."""

    default = ""
    """The command that is meant where none is named."""
    takes_values = False
    """Whether a first word that is no command is given to the default one."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer keeps the type private
        """Return the parameters, with the labels of switches removed."""
        return _unlabelled(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer keeps the type private
        """Insert the default command if none is named."""
        # A shell that completes wants to know the commands.
        if self.default and not ctx.resilient_parsing and not self._names_command(args):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _names_command(self, args: Sequence[str]) -> bool:
        first = args[0] if args else "-"
        if first.startswith("-"):
            return first == "--help"
        return not self.takes_values or first in self.commands or bool(_nearest(first, self.commands))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer keeps the types private
        """Return the command that is meant, or fail with the names of the nearest."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            paths = dict(_paths(self)) | {old: new for old, new in MOVED.items() if not ctx.parent}
            near = [f"`{ctx.command_path} {paths[name]}`" for name in _nearest(args[0], paths)]
            hint = f"did you mean {' or '.join(near)}?" if near else f"`{ctx.command_path} --help` lists them"
            ctx.fail(f"There is no command {args[0][:40]!r}: {hint}")
        return super().resolve_command(ctx, args)


def _paths(group: TyperGroup) -> Iterator[tuple[str, str]]:
    """Yield the name of each command and what has to be typed for it; of two with one name the shorter."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from ((below, f"{name} {path}") for below, path in _paths(command))
    yield from ((name, name) for name in group.commands)


def _nearest(word: str, names: Iterable[str]) -> list[str]:
    return get_close_matches(word, names, n=2, cutoff=0.75)


def _unlabelled(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def say(text: str) -> None:
    """Print a message on standard error, on one line."""
    sys.stderr.write(f"lowwater: {' '.join(text.split())}\n")


def check_paths(paths: Iterable[Path]) -> None:
    """Raise BadInput if a file or folder does not exist."""
    for path in paths:
        if not path.exists():
            raise BadInput(f"{on_one_line(str(path), 200)} is not there")


def write_page(place: Path, data: bytes) -> None:
    """Write a report to a file and say so, or raise a BadInput that says why it cannot be written."""
    try:
        place.write_bytes(data)
    except OSError as error:
        raise BadInput(f"{on_one_line(str(place), 200)} cannot be written: {error.strerror}") from None
    say(f"wrote {on_one_line(str(place), 200)}")


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
        # Windows gives a pipe or a file a code page that lacks most of what is printed.
        is_ansi = os.name == "nt" and not sys.stdout.isatty()
        sys.stdout.reconfigure(encoding="utf-8" if is_ansi else None, errors="backslashreplace")
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
