"""`lowwater config`: shows the effective settings, and where each comes from."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import AsJson, with_settings
from lowwater.cli.tables import fields_of, figures_table, grid, print_json, print_page
from lowwater.cli.wording import setting_text
from lowwater.session.plugins import policy_names
from lowwater.settings.resolve import Effective, Resolved, sections
from lowwater.settings.schema import settings_schema


def _print_schema(wanted: bool) -> None:
    if wanted:
        print_json(settings_schema(policies=policy_names()))
        raise typer.Exit


@partial(with_settings, listed=True)
def config(
    *,
    settings: Resolved,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="One setting or one section; all without it.")
    ] = None,
    json: AsJson = False,
    schema: Annotated[  # noqa: ARG001 - its callback does the work, before a broken file could be read
        bool, typer.Option("--schema", help="Print the JSON Schema of lowwater.yaml.", callback=_print_schema)
    ] = False,
) -> None:
    """Show the effective settings, and where each comes from.

    Later sources override earlier ones: defaults, lowwater.yaml, LOWWATER_
    variables, flags. The file is the one named by --config or LOWWATER_CONFIG,
    else the one in this directory, else the one in ~/.config/lowwater.

    lowwater config
    lowwater config threshold          one setting, and what it means
    lowwater config --schema > lowwater.schema.json
    """
    if key is None or key in sections():
        chosen = [found for found in settings.effective if key in {None, found.setting.section}]
        said, page = _report(chosen, settings.warnings), _table(chosen)
    else:
        said, page = _card(settings.of(key)), _card_table(settings.of(key))
    if json:
        print_json(said)
    else:
        print_page([page])


def _report(chosen: Sequence[Effective], warnings: tuple[str, ...]) -> dict[str, object]:
    """Return `settings` in the shape of lowwater.yaml, and their origins by name."""
    nested: dict[str, Any] = {}
    for found in chosen:
        place = nested.setdefault(found.setting.section, {}) if found.setting.section else nested
        place[found.setting.name] = found.value
    origins = {found.setting.name: _origin_json(found) for found in chosen}
    return {"settings": nested, "origins": origins, "warnings": warnings}


def _origin_json(found: Effective) -> dict[str, object]:
    """Return where a value came from: default, file, environment or flag, its place there, and what it was clamped from."""
    return fields_of(found, "value", "source", "place", "clamped_from")


def _card(found: Effective) -> dict[str, object]:
    setting = found.setting
    about = fields_of(setting, "name", "path", "description", "default", "variable", "flag")
    return about | _origin_json(found) | {"takes": setting.expected}


def _table(chosen: Sequence[Effective]) -> Table:
    table = figures_table("setting")
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
    table = grid(label=None)
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
