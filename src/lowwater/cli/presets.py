"""`lowwater presets`: what a model's prices say about when to compact, as a table, one page, or JSON."""

from datetime import UTC, date, datetime
from typing import Annotated

import typer
from msgspec import Struct
from rich.console import Console

from lowwater.adapters.models import load_registry, noon
from lowwater.cli.preset_json import Row, presets_json
from lowwater.cli.preset_page import page, table
from lowwater.cli.printing import fitted_block
from lowwater.cli.tiers import current
from lowwater.core.costs.tuning import limits_of, tuning_of
from lowwater.core.models.model import Model
from lowwater.core.models.registry import Registry
from lowwater.errors import BadInput

_GROWTH, _PART, _SUMMARY = 2_000, 20_000, 3_000
_LEAST_SHARE = 5
"""Tools and system, and the tail, are each taken to be no more than one part in so many of what fits."""
_READ_FOR_EACH = 40
"""Tokens read for each token of a summary, by which models that could write it are compared."""


class Asked(Struct, frozen=True, kw_only=True):
    """What the options say of the session."""

    growth: int
    preamble: int | None
    tail: int | None
    summary: int | None
    ceiling: int | None
    summary_model: str | None


def presets(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="Models in any spelling: one for a page, several for a table; none for the current tiers.",
            show_default=False,
        ),
    ] = None,
    *,
    growth: Annotated[
        int, typer.Option(metavar="N", min=1, help="Tokens that a call adds to the prompt.")
    ] = _GROWTH,
    preamble: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Tokens of tools and system; 20,000, or a fifth of what fits.",
            show_default=False,
        ),
    ] = None,
    tail: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Tokens of the newest messages, which stay; 20,000, or a fifth of what fits.",
            show_default=False,
        ),
    ] = None,
    summary: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Tokens of a summary; 3,000, if they fit.", show_default=False),
    ] = None,
    summary_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A model that may write the summaries; compared with the cheapest of the provider without it.",
            show_default=False,
        ),
    ] = None,
    max_view_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="A ceiling for the prompt, as the setting.", show_default=False
        ),
    ] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help="Prices of that day; today's without it.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every listed model, not the current ones only.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Show what a model's prices say about when to compact: the tuning guide as a command.

    Nothing here is a setting written down by hand: every number follows from
    the model's prices and cache rules, for a session that grows steadily. The
    policy rent-or-buy arrives at them by itself; for other policies they say
    what to set. An unknown model is no error: ratios are assumed, and said to be.

    lowwater presets                                the current tiers
    lowwater presets claude-opus-5.5                what each number means
    lowwater presets claude-opus-5.5 --growth 500   a chat, not a coding agent
    lowwater presets gpt-6.1-sol deepseek-flash     side by side
    """
    day = as_of.date() if as_of else datetime.now(tz=UTC).date()
    registry = load_registry(as_of=day)
    asked = Asked(
        growth=growth,
        preamble=preamble,
        tail=tail,
        summary=summary,
        ceiling=max_view_tokens,
        summary_model=summary_model,
    )
    chosen = [registry.find(_readable(name)) for name in models or ()]
    shown = chosen or (list(registry.models) if everything else current(registry.models))
    rows = [_row(model, asked, registry, day) for model in shown]
    if json:
        typer.echo(presets_json(rows))
        return
    console = Console(highlight=False)
    for block in page(rows[0], registry) if len(chosen) == 1 else table(rows, day, registry):
        console.print(fitted_block(block, console.width))


def _row(model: Model, asked: Asked, registry: Registry, day: date) -> Row:
    part = min(_PART, limits_of(model, ceiling=asked.ceiling).threshold // _LEAST_SHARE)
    named = registry.find(_readable(asked.summary_model)) if asked.summary_model is not None else None
    if named is not None and named.prices is None:
        raise BadInput(
            f"{named.name} has no known price to compare with: name another model with --summary-model"
        )
    tuning = tuning_of(
        model,
        growth=asked.growth,
        preamble=part if asked.preamble is None else asked.preamble,
        tail=part if asked.tail is None else asked.tail,
        summary=min(_SUMMARY, part) if asked.summary is None else asked.summary,
        other=named or _cheapest(model, registry),
        prefer_other=named is not None,
        ceiling=asked.ceiling,
        at=noon(day).timestamp(),
    )
    return Row(tuning=tuning, as_of=day.isoformat(), assumptions=model.assumptions)


def _cheapest(model: Model, registry: Registry) -> Model | None:
    """Return the provider's model that would write a summary of a full history for least, if it is not this one."""

    def cost(other: Model) -> int:
        return other.prices.input * _READ_FOR_EACH + other.prices.output if other.prices else 0

    sold = [
        other for other in registry.models if other.provider == model.provider and other.prices is not None
    ]
    cheapest = min(sold, key=cost, default=None)
    if cheapest is None or model.prices is None or cost(cheapest) >= cost(model):
        return None
    return cheapest


def _readable(name: str) -> str:
    if not name.strip():
        raise BadInput(
            "a model's name is empty: give one, such as claude-opus-5-5, or none for the whole table"
        )
    return name.encode(errors="backslashreplace").decode()
