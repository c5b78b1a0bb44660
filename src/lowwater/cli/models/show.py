"""`lowwater models show`: the model registry as a table, one model in detail, or JSON.

`current_models` picks the models that `lowwater models presets` shows by default.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import groupby
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli.command import AsJson
from lowwater.cli.tables import figures_table, grid, print_json, print_page
from lowwater.cli.wording import (
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
from lowwater.core.models.model import CacheRules, Model, Prices
from lowwater.core.models.names import is_suffix
from lowwater.core.models.registry import ModelMatch, Registry
from lowwater.errors import BadInput

_VERSIONED = re.compile(r"([a-z]*)(\d+(?:\.\d+)*)[a-z]?")
_STAGES = frozenset({"preview", "latest"})
_FIRST_DATE_NUMBER = 1_000
"""Numbers from here on are dates, not versions."""
_NANO_PER_DOLLAR = 1_000_000
_COLUMNS = ("context", "output", "$ in", "read", "write", "out", "cliff")


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A model's name in any spelling; a router's or cloud's prefix and a date are allowed.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show windows, prices and cache rules, and their sources.

    Without NAME, a table by provider. With NAME, one model: the listed model
    that the name was matched with, window and output limit, prices and their
    ratios to the input price, the cliff above which a whole request costs
    more, cache rules, sources, and every assumption made. An unknown model is
    not an error: Lowwater works with stated assumptions and without dollar
    figures.

    Prices are today's, in dollars per million tokens.

    lowwater models show                        every listed model
    lowwater models show claude-opus-5.5        one; `show` can be left out
    lowwater models openrouter/openai/gpt-6.1-sol --json
    """
    registry = load_registry(as_of=datetime.now(tz=UTC).date())
    match = None if name is None else registry.match(readable(name))
    if json:
        print_json(registry_json(registry) if match is None else match_json(match))
    else:
        print_page(_listing(registry) if match is None else _card(match, registry))


def readable(name: str) -> str:
    """Return a model's name as it was typed, or raise a BadInput that says what is wrong with it."""
    if not name.strip():
        raise BadInput("a model's name is empty: give one, such as claude-opus-5-5, or none for the table")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise BadInput("a model's name is not text in UTF-8: check how it was typed or pasted") from None
    return name


def _listing(registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield a table for each provider and cache rule, then the rules for families without listed models."""

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
    table = figures_table("", figures=_COLUMNS, gap=1)
    table.columns[0].width = 26
    for column in table.columns[1:]:
        column.width = 7
    for model in members:
        prices = model.prices
        amounts = (
            (prices.input, prices.cache_read, prices.cache_write, prices.output) if prices else (None,) * 4
        )
        cliff = short(model.cliffs[0].above) if model.cliffs else ""
        cells = (short(model.context_length), short(model.max_output), *map(dollars, amounts), cliff)
        table.add_row(Text(model.name), *cells)
    return table


def _card(match: ModelMatch, registry: Registry) -> Iterator[Table | Text | Padding]:
    """Yield everything known about one model."""
    model = match.model
    yield Text.assemble((model.name, "bold"), " · ", model.provider)
    card = grid(label=None)
    for label, said in _model_facts(match, registry):
        card.add_row(label, Text(said))
    for number, said in enumerate(model.assumptions):
        card.add_row(Text("" if number else "assumptions", style="yellow"), Text(said))
    yield Padding(card, (0, 0, 0, 2))


def _model_facts(match: ModelMatch, registry: Registry) -> Iterator[tuple[str, str]]:
    model = match.model
    yield "asked for", match.spelling.asked
    yield "matched", how_matched(match)
    if match.how in ("family", "unknown") and (close := _similar_names(match, registry)):
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


def _similar_names(match: ModelMatch, registry: Registry) -> list[str]:
    return get_close_matches(match.spelling.name, [model.name for model in registry.models], n=3)


class Tier(Struct, frozen=True, kw_only=True):
    """The tier of a model (its provider and name without version) and the model's version."""

    provider: str
    words: tuple[str, ...]
    version: tuple[int, ...]


def current_models(models: Iterable[Model]) -> list[Model]:
    """Return the newest model of each tier, in the order of `models`, unless another tier superseded it.

    Left out are dated copies of a listed model, resold models at their maker's prices, and tiers whose provider sells a
    newer generation (the first number of a version) that costs no more for any kind of token.
    """
    listed = list(models)
    newest: dict[tuple[str, tuple[str, ...]], Model] = {}
    for model in listed:
        tier = tier_of(model)
        known = newest.get((tier.provider, tier.words))
        is_newer = known is None or tier.version > tier_of(known).version
        if is_newer and not _is_duplicate(model, listed):
            newest[tier.provider, tier.words] = model
    kept = [model for model in listed if any(model is each for each in newest.values())]
    return [model for model in kept if not any(_supersedes(other, model) for other in kept)]


def tier_of(model: Model) -> Tier:
    """Return a model's tier and version, read from its name."""
    words: list[str] = []
    version: list[int] = []
    for word in re.split(r"[-/]", model.name):
        versioned = _VERSIONED.fullmatch(word)
        if versioned:
            version += map(int, versioned[2].split("."))
        spelled = versioned[1] if versioned else word
        if spelled and spelled not in _STAGES:
            words.append(spelled)
    return Tier(provider=model.provider, words=tuple(words), version=tuple(version))


def _is_duplicate(model: Model, listed: Iterable[Model]) -> bool:
    bare = model.name.rpartition("/")[2]
    return any(
        other is not model
        and (
            (model.name.startswith(other.name) and is_suffix(model.name[len(other.name) :]))
            or (bare != model.name and other.name == bare and other.prices == model.prices)
        )
        for other in listed
    )


def _supersedes(newer: Model, older: Model) -> bool:
    new, old = tier_of(newer), tier_of(older)
    if new.provider != old.provider or not (new.version and old.version):
        return False
    if not old.version[0] < new.version[0] < _FIRST_DATE_NUMBER:
        return False
    return newer.prices is not None and older.prices is not None and _no_dearer(newer.prices, older.prices)


def _no_dearer(one: Prices, other: Prices) -> bool:
    return (
        one.input <= other.input
        and one.cache_read <= other.cache_read
        and one.cache_write <= other.cache_write
        and one.output <= other.output
    )


def match_json(match: ModelMatch) -> dict[str, object]:
    """Return a name and the model it was matched with as JSON values."""
    return {
        "asked": match.spelling.asked,
        "how": match.how,
        "ignored_suffix": match.suffix,
        "model": _model_json(match.model),
    }


def registry_json(registry: Registry) -> dict[str, object]:
    """Return the whole registry as JSON values."""
    return {"models": [_model_json(model) for model in registry.models], "families": registry.families}


def _model_json(model: Model) -> dict[str, object]:
    """Return a model with its prices in dollars and as ratios; None means unknown, not published, or no price of its own."""
    own = {"prices", "periods", "max_bytes", "compacts"}
    return {name: value for name, value in asdict(model).items() if name not in own} | {
        "usd_per_million_tokens": _dollars(model.prices),
        "ratios": _ratios(model.prices),
        "cliffs": [
            {
                "above": each.above,
                "inclusive": each.inclusive,
                "usd_per_million_tokens": _dollars(each.prices),
            }
            for each in model.cliffs
        ],
    }


def _dollars(prices: Prices | None) -> dict[str, float | None] | None:
    if prices is None:
        return None
    return {
        kind: None if price is None else price / _NANO_PER_DOLLAR for kind, price in asdict(prices).items()
    }


def _ratios(prices: Prices | None) -> dict[str, float | None] | None:
    """Return prices as multiples of the input price."""
    if prices is None:
        return None
    kinds = {
        "read": prices.cache_read,
        "write": prices.cache_write,
        "write_long": prices.cache_write_long,
        "output": prices.output,
    }
    return {kind: None if price is None else price / prices.input for kind, price in kinds.items()}
