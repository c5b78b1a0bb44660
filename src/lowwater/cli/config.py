"""`lowwater config`: shows the effective settings, and where each comes from."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import with_settings
from lowwater.cli.stored_sessions import fitted_block
from lowwater.cli.wording import setting_text
from lowwater.session.plugins import policy_names
from lowwater.settings.resolve import Effective, Resolved, sections
from lowwater.settings.schema import settings_schema


class SettingOrigin(Struct, frozen=True, kw_only=True):
    """Where a setting's value came from; part of the stable output of `--json`.

    `source` is default, file, environment or flag; `place` is file and line, the variable, or the flag; `clamped_from`
    is what was given, as text, where it was out of range, else null.
    """

    value: Any
    source: str
    place: str
    clamped_from: str | None


class ConfigReport(Struct, frozen=True, kw_only=True):
    """What `lowwater config --json` prints: `settings` in the shape of lowwater.yaml, `origins` by name."""

    settings: dict[str, Any]
    origins: dict[str, SettingOrigin]
    warnings: tuple[str, ...]


class SettingCard(Struct, frozen=True, kw_only=True):
    """What `lowwater config KEY --json` prints about one setting."""

    name: str
    path: str
    value: Any
    source: str
    place: str
    clamped_from: str | None
    description: str
    takes: str
    default: Any
    variable: str
    flag: str


def _print_schema(wanted: bool) -> None:
    if wanted:
        _print_json(settings_schema(policies=policy_names()))
        raise typer.Exit


@partial(with_settings, listed=True)
def config(
    *,
    settings: Resolved,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="One setting or one section; all without it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    schema: Annotated[  # noqa: ARG001 - its callback does the work, before a broken file could be read
        bool,
        typer.Option("--schema", help="Print the JSON Schema of lowwater.yaml.", callback=_print_schema),
    ] = False,
) -> None:
    """Show the effective settings, and where each comes from.

    Later sources override earlier ones: defaults, lowwater.yaml, LOWWATER_
    variables, flags. The file is the one named by --config or LOWWATER_CONFIG,
    else the one in this directory, else the one in ~/.config/lowwater.
    """
    if key is None or key in sections():
        chosen = [found for found in settings.effective if key in {None, found.setting.section}]
        if as_json:
            _print_json(_report(chosen, settings.warnings))
        else:
            console = Console()
            console.print(fitted_block(_table(chosen), console.width))
    elif as_json:
        _print_json(_card(settings.of(key)))
    else:
        Console().print(_card_table(settings.of(key)))


def _report(chosen: Sequence[Effective], warnings: tuple[str, ...]) -> ConfigReport:
    nested: dict[str, Any] = {}
    for found in chosen:
        place = nested.setdefault(found.setting.section, {}) if found.setting.section else nested
        place[found.setting.name] = found.value
    return ConfigReport(
        settings=nested,
        origins={
            found.setting.name: SettingOrigin(
                value=found.value, source=found.source, place=found.place, clamped_from=found.clamped_from
            )
            for found in chosen
        },
        warnings=warnings,
    )


def _card(found: Effective) -> SettingCard:
    setting = found.setting
    return SettingCard(
        name=setting.name,
        path=setting.path,
        value=found.value,
        source=found.source,
        place=found.place,
        clamped_from=found.clamped_from,
        description=setting.description,
        takes=setting.expected,
        default=setting.default,
        variable=setting.variable,
        flag=setting.flag,
    )


def _print_json(value: object) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def _table(chosen: Sequence[Effective]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    heading, is_expert = "", False
    for found in sorted(chosen, key=lambda each: each.setting.is_expert):
        section = found.setting.section
        if found.setting.is_expert and not is_expert:
            heading, is_expert = "", True
            table.add_row()
            table.add_row(Text("expert settings", style="dim"))
        if section != heading:
            heading = section
            table.add_row(Text(section, style="bold"))
        indent = "  " if section else ""
        style = "dim" if found.source == "default" else ""
        table.add_row(Text(indent + found.setting.name), _value(found), Text(_origin(found), style=style))
    return table


def _card_table(found: Effective) -> Table:
    setting = found.setting
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rows: list[tuple[str, str | Text]] = [
        (setting.name, _value(found)),
        ("from", _origin(found)),
        ("means", setting.description),
        ("takes", setting.expected),
        ("default", setting_text(setting.default)),
        ("in lowwater.yaml", setting.path),
        ("in the environment", setting.variable),
        ("as a flag", setting.flag),
    ]
    for label, text in rows:
        table.add_row(label, Text(text) if isinstance(text, str) else text)
    return table


def _value(found: Effective) -> Text:
    text = Text(setting_text(found.value), style="" if found.source == "default" else "bold")
    if found.clamped_from is not None:
        text.append(f" (clamped from {found.clamped_from})", style="not bold yellow")
    return text


def _origin(found: Effective) -> str:
    return found.place or found.source
