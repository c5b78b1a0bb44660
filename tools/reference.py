"""Writes the reference pages from the code: the command line, the library, the settings. `python -m tools.reference`."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import lowwater
from lowwater.cli.app import app
from lowwater.cli.wording import setting_text
from lowwater.settings.resolve import catalogue

PAGES = Path(__file__).parents[1] / "docs" / "reference"
_MARKUP = re.compile(r"\[/?(?:bold|cyan|dim)\]")
_SETTINGS_PANEL = "Settings"


def command_page() -> str:
    """Return the reference of the command line: every command with its arguments and options."""
    root = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        "Every command, from its own help (`python -m tools.reference` writes this page). Options that set a",
        "[setting](settings.md) are taken by all commands that decide something, and are listed there.",
        "",
    ]
    for name, command in sorted(_commands(root), key=lambda pair: pair[0]):
        lines += _command(name, command)
    return "\n".join(lines).rstrip() + "\n"


def library_page() -> str:
    """Return the reference of the library: every public name with its contract."""
    lines = [
        "# Library",
        "",
        "Every public name of `lowwater`, from its docstring (`python -m tools.reference` writes this page).",
        "",
    ]
    for name in sorted(lowwater.__all__, key=str.lower):
        lines += _entry(name, getattr(lowwater, name))
    return "\n".join(lines).rstrip() + "\n"


def settings_page() -> str:
    """Return the reference of the settings: each with its default, its variable and its meaning."""
    lines = [
        "# Settings",
        "",
        "From defaults, `lowwater.yaml`, variables and flags, the later the stronger; `lowwater config` shows what",
        "holds and where it was set (`python -m tools.reference` writes this page).",
        "",
        *_settings(is_expert=False),
        "",
        "## Expert settings",
        "",
        "Hardly anybody has a reason to change these. They are for comparing policies, and for conversations unlike those",
        "that the defaults were measured on.",
        "",
        *_settings(is_expert=True),
    ]
    return "\n".join(lines) + "\n"


def _settings(*, is_expert: bool) -> Iterator[str]:
    yield from ("| setting | default | variable | flag | meaning |", "|---|---|---|---|---|")
    for setting in catalogue():
        if setting.is_expert == is_expert:
            meaning = setting.description.replace("|", "\\|")
            default = setting_text(setting.default).replace("|", "\\|")
            yield f"| `{setting.name}` | `{default}` | `{setting.variable}` | `{setting.flag}` | {meaning} |"


PAGES_BY_NAME = {"cli.md": command_page, "library.md": library_page, "settings.md": settings_page}


def _commands(group: Any, before: str = "lowwater") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer has its own click
    for name, command in group.commands.items():
        path = f"{before} {name}"
        yield path, command
        if hasattr(command, "commands"):
            yield from _commands(command, path)


def _command(name: str, command: Any) -> list[str]:  # noqa: ANN401 - as above
    said, _, examples = _help(command).partition("\n\nlowwater ")
    lines = [f"## {name}", "", said, ""]
    if examples:
        lines += [
            "```console",
            *(f"$ {line}" for line in f"lowwater {examples}".splitlines() if line.strip()),
            "```",
            "",
        ]
    rows = [row for parameter in command.params if (row := _parameter(parameter))]
    if rows:
        lines += ["| | |", "|---|---|", *rows, ""]
    return lines


def _help(command: Any) -> str:  # noqa: ANN401
    return _MARKUP.sub("", inspect.cleandoc(command.help or "")).replace("\x08", "").strip()


def _parameter(parameter: Any) -> str:  # noqa: ANN401 - typer adds to click's types
    if (getattr(parameter, "rich_help_panel", None) or "").startswith(
        _SETTINGS_PANEL
    ) or parameter.name == "help":
        return ""
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        names = parameter.metavar or parameter.name.upper()
    said = " ".join(_MARKUP.sub("", getattr(parameter, "help", None) or "").split()).replace("|", "\\|")
    return f"| `{names}` | {said} |"


def _entry(name: str, value: object) -> list[str]:
    lines = [f"## {name}", ""]
    if inspect.isclass(value) or inspect.isfunction(value):
        lines += ["```python", f"{name}{_signature(value)}", "```", ""]
    lines += [inspect.getdoc(value) or "", ""]
    if inspect.isclass(value) and not issubclass(value, Exception):
        for member, function in inspect.getmembers(value, inspect.isfunction):
            if not member.startswith("_") and function.__module__.startswith("lowwater"):
                first = (inspect.getdoc(function) or "").partition("\n")[0]
                lines.append(f"- `{member}{_signature(function, is_method=True)}`: {first}")
        lines.append("")
    return lines


def _signature(value: Any, *, is_method: bool = False) -> str:  # noqa: ANN401 - a class or a function
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = list(signature.parameters.values())[1 if is_method else 0 :]
    names = [
        f"{parameter.name}=…" if parameter.default is not inspect.Parameter.empty else parameter.name
        for parameter in parameters
    ]
    return f"({', '.join(names)})"


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    for name, page in PAGES_BY_NAME.items():
        (PAGES / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
