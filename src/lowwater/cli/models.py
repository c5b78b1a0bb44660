"""`lowwater models`: what is known of models, as a table, as one card, or as JSON."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import groupby
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.model_json import match_json, registry_json
from lowwater.cli.model_words import (
    cache_sentence,
    cliff_sentence,
    dollars,
    how_matched,
    lifetime,
    matching,
    price_list,
    ratio_list,
    short,
)
from lowwater.cli.printing import fitted_block
from lowwater.core.models.model import CacheRules, Model
from lowwater.core.models.registry import Match, Registry
from lowwater.errors import BadInput

_COLUMNS = ("context", "output", "$ in", "read", "write", "out", "cliff")


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A model's name in any spelling, with a router's or cloud's prefix and a date if you like.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Show what Lowwater knows of models: windows, prices, cache rules, and from where.

    Without NAME a table by provider. With NAME one model: which listed one
    the name was taken for, window and output limit, prices and their ratios
    to input, the cliff above which a whole request costs more, cache rules,
    sources, and every assumption made. An unknown model is no error: it
    works with stated assumptions and without dollar figures.

    Prices are today's, in dollars per million tokens.

    lowwater models                            everything listed
    lowwater models claude-opus-5.5            one model
    lowwater models openrouter/openai/gpt-6.1-sol --json
    """
    registry = load_registry(as_of=datetime.now(tz=UTC).date())
    if name is None:
        _print(registry_json(registry) if json else _listing(registry))
        return
    match = registry.match(_readable(name))
    _print(match_json(match) if json else _card(match, registry))


def _print(what: str | Iterable[Table | Text | Padding]) -> None:
    """Write JSON as it is, and anything else as wide as the terminal."""
    if isinstance(what, str):
        typer.echo(what)
        return
    console = Console(highlight=False)
    for block in what:
        console.print(fitted_block(block, console.width))


def _readable(name: str) -> str:
    if not name.strip():
        raise BadInput(
            "the model's name is empty: give one, such as claude-opus-5-5, or none for the whole table"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise BadInput("the model's name is not text in UTF-8: check how it was typed or pasted") from None
    return name


def _listing(registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield one table for each provider and cache rule, then what holds for models that are not listed."""

    def kind(model: Model) -> tuple[str, str]:
        return (model.provider, _rule(model.cache))

    order = list(dict.fromkeys(map(kind, registry.models)))
    grouped = groupby(sorted(registry.models, key=lambda model: order.index(kind(model))), key=kind)
    for (provider, rule), members in grouped:
        yield _heading(provider, rule)
        yield _table(members)
    listed = {model.provider for model in registry.models}
    for family in registry.families:
        if family.provider not in listed:
            names = " ".join(f"{prefix}…" for prefix in family.prefixes)
            yield _heading(names, f"{_rule(family.cache)}; no prices. {family.notes}")
    yield Text()
    yield Text(
        "Dollars per million tokens. Above the cliff a whole request costs more: see `lowwater models NAME`."
    )


def _rule(cache: CacheRules) -> str:
    return f"{matching(cache)}; {lifetime(cache)}"


def _heading(title: str, said: str) -> Text:
    return Text.assemble("\n", (title, "bold"), " · ", (said, "dim"))


def _table(members: Iterable[Model]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", width=26, no_wrap=True)
    for title in _COLUMNS:
        table.add_column(title, justify="right", width=7, no_wrap=True)
    for model in members:
        prices = model.prices
        amounts = (
            (prices.input, prices.cache_read, prices.cache_write, prices.output) if prices else (None,) * 4
        )
        cliff = short(model.cliffs[0].above) if model.cliffs else ""
        cells = (short(model.context_length), short(model.max_output), *map(dollars, amounts), cliff)
        table.add_row(Text(model.name), *cells)
    return table


def _card(match: Match, registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield everything known of one model, a line or paragraph each."""
    model = match.model
    yield Text.assemble((model.name, "bold"), " · ", model.provider)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, said in _facts(match, registry):
        grid.add_row(label, Text(said))
    for number, said in enumerate(model.assumptions):
        grid.add_row(Text("" if number else "assumptions", style="yellow"), Text(said))
    yield Padding(grid, (0, 0, 0, 2))


def _facts(match: Match, registry: Registry) -> Iterator[tuple[str, str]]:
    model = match.model
    yield "asked for", match.spelling.asked
    yield "matched", how_matched(match)
    if match.how in ("family", "unknown") and (close := _close(match, registry)):
        yield "listed", f"Names like it: {', '.join(close)}."
    yield "context", f"{model.context_length:,} tokens"
    yield "output", f"at most {model.max_output:,} tokens" if model.max_output else "limit not published"
    if model.prices is None:
        yield "prices", "no price known: costs are shown in tokens only"
    else:
        yield "prices", f"{price_list(model.prices)} ($ per million tokens)"
        yield "ratios", f"{ratio_list(model.prices)}, as multiples of input"
    for cliff in model.cliffs:
        yield "cliff", cliff_sentence(cliff)
    yield "cache", cache_sentence(model.cache)
    if model.binds_thinking:
        yield "thinking", "Bound to its prefix: a thinking block behind changed messages is refused."
    if model.notes:
        yield "notes", model.notes
    if model.sources:
        yield "sources", "\n".join(model.sources)
    if model.as_of:
        yield "as of", model.as_of


def _close(match: Match, registry: Registry) -> list[str]:
    return get_close_matches(match.spelling.name, [model.name for model in registry.models], n=3)
