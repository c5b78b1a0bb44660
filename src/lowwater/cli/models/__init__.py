"""`lowwater models`: what is known about models, and when compaction pays on them; a name alone shows that model."""

import typer

from lowwater.cli.command import Command, Group
from lowwater.cli.models.presets import presets
from lowwater.cli.models.show import show

__all__ = ["models"]

INTRODUCTION = """\
Show windows, prices and cache rules, and when compaction pays.

Without a command the models are listed; a model's name alone shows it.

[cyan]lowwater models[/cyan]                            every listed model, by provider
[cyan]lowwater models claude-opus-5.5[/cyan]            one of them
[cyan]lowwater models presets[/cyan]                    when compaction pays, by model
[cyan]lowwater models presets claude-opus-5.5[/cyan]    on one, with what each number means
"""


class _Models(Group):
    default = "show"
    takes_values = True


models = typer.Typer(cls=_Models, help=INTRODUCTION, rich_markup_mode="rich")
models.command("show", cls=Command)(show)
models.command("presets", cls=Command)(presets)
