"""An HTML report in one file, with style, scripts and data inside, and how its figures are written."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Literal

import msgspec
from msgspec import Struct

from lowwater.core.accounts.advice import advice_dollars
from lowwater.core.models.model import Model

# Figures in words

UNKNOWN = "unknown"
_NANO = 1_000_000_000
_THOUSAND = 1_000 * _NANO


def page_money(nano: int) -> str:
    """Return nano-dollars as dollars; from a thousand dollars on, without cents."""
    return (
        f"{'-' if nano < 0 else ''}${abs(nano) / _NANO:,.0f}"
        if abs(nano) >= _THOUSAND
        else advice_dollars(nano)
    )


def page_amount(nano: int | None) -> str:
    """Return nano-dollars as dollars, or `unknown`."""
    return UNKNOWN if nano is None else page_money(nano)


def page_share(part: float | None) -> str:
    """Return a share in percent, or a dash."""
    return "–" if part is None else f"{part:.1%}".replace("%", " %")


def times(ratio: float | None) -> str:
    """Return a ratio with two decimals, or a dash."""
    return "–" if ratio is None else f"{ratio:,.2f} ×"


def page_tokens(tokens: float) -> str:
    """Return a number of tokens in about three digits: 950, 12.3K, 4.1M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if tokens >= size:
            return f"{tokens / size:.{0 if tokens >= 100 * size else 1}f}{unit}"
    return f"{tokens:,.0f}"


def listed(words: Sequence[str]) -> str:
    """Return words as a list: `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# Costs by day, week or month

MOST_COLUMNS = 120
MOST_MODELS = 7
OTHER_MODELS = "other models"
Unit = Literal["day", "week", "month"]
_UNITS: tuple[Unit, ...] = ("day", "week", "month")


class Spent(Struct, frozen=True, kw_only=True):
    """What one model cost in each period."""

    model: str
    cost: list[int]


class Periods(Struct, frozen=True, kw_only=True):
    """Periods by their first days, and the cost of each model in them: the most expensive first, small ones summed up."""

    unit: Unit = "day"
    starts: list[str] = []
    spent: list[Spent] = []


def periods_of(costs: Mapping[tuple[str, str], int]) -> Periods:
    """Return costs, given by day (YYYY-MM-DD) and model, as the columns of a chart."""
    if not costs:
        return Periods()
    days = sorted({day for day, _ in costs})
    unit = next(unit for unit in _UNITS if unit == "month" or len(_starts(days, unit)) <= MOST_COLUMNS)
    starts = _starts(days, unit)
    place = {start: index for index, start in enumerate(starts)}
    of_model: dict[str, int] = {}
    for (_, model), cost in costs.items():
        of_model[model] = of_model.get(model, 0) + cost
    dearest = sorted(of_model, key=lambda model: (-of_model[model], model))
    own = dearest if len(dearest) <= MOST_MODELS + 1 else dearest[:MOST_MODELS]
    names = own if len(own) == len(dearest) else [*own, OTHER_MODELS]
    table = {name: [0] * len(starts) for name in names}
    for (day, model), cost in costs.items():
        table[model if model in own else OTHER_MODELS][place[_start(day, unit)]] += cost
    return Periods(unit=unit, starts=starts, spent=[Spent(model=name, cost=table[name]) for name in names])


def _starts(days: list[str], unit: Unit) -> list[str]:
    """Return the first day of every period, without gaps."""
    return list(_walk(_start(days[0], unit), _start(days[-1], unit), unit))


def _walk(first: str, last: str, unit: Unit) -> Iterator[str]:
    here = first
    while here <= last:
        yield here
        length = {"day": 1, "week": 7, "month": 32}[unit]
        here = _start((date.fromisoformat(here) + timedelta(days=length)).isoformat(), unit)


def _start(day: str, unit: Unit) -> str:
    given = date.fromisoformat(day)
    match unit:
        case "day":
            return day
        case "week":
            return (given - timedelta(days=given.weekday())).isoformat()
        case "month":
            return given.replace(day=1).isoformat()


# The page

NO_CONTENTS = "numbers and names of sessions and models, no contents of messages"
_STYLES = (
    "colours.css",
    "layout.css",
    "controls.css",
    "tables.css",
    "uplot/uPlot.min.css",
    "charts.css",
    "media.css",
)
_SHARED = ("uplot/uPlot.iife.min.js", "base.js", "table.js", "chart.js", "theme.js")
_OWN: Mapping[str, tuple[str, ...]] = {"audit": ("audit.js",), "replay": ("timelines.js", "replay.js")}
_NANO_DOLLARS = 1_000_000
"""One dollar per million tokens, in the unit of prices: nano-dollars per 1,000 tokens."""


class Tile(Struct, frozen=True, kw_only=True):
    """One figure at the top of a page."""

    name: str
    figure: str
    note: str = ""
    is_ours: bool = False


class HtmlDocument(Struct, frozen=True, kw_only=True):
    """What a page says, as plain text; nothing in it is markup."""

    report: str
    """`audit` or `replay`: the template of that name and its scripts."""
    headline: str
    lead: str
    tiles: Sequence[Tile]
    texts: Mapping[str, str]
    """By the names of the template's placeholders."""
    notes: Sequence[str]
    """How things were measured, and what is estimated."""
    models: Sequence[Model] = ()
    """The models whose prices are shown."""
    holds: str = NO_CONTENTS
    """What is in the file, for whoever wants to hand it on."""
    made_at: float
    data: Struct


def render_page(document: HtmlDocument) -> str:
    """Return the page as HTML."""
    style = "\n".join(map(asset, _STYLES))
    parts = map(asset, (*_SHARED, *_OWN[document.report]))
    script = "\n".join([f"/*\n{asset('uplot/LICENSE')}*/", "(() => {", '"use strict";', *parts, "})();"])
    texts = {name: escape(text) for name, text in document.texts.items()}
    return Template(asset("page.html")).substitute(
        title=escape(f"Lowwater {document.report} · {utc_day(document.made_at)}"),
        kind=escape(document.report),
        headline=escape(document.headline),
        lead=escape(document.lead),
        tiles="".join(map(_tile, document.tiles)),
        sections=Template(asset(f"{document.report}.html")).substitute(texts),
        notes="".join(f"<li>{escape(note)}</li>" for note in document.notes),
        prices=_prices(document.models),
        holds=escape(document.holds),
        made=utc_moment(document.made_at),
        version=escape(version("lowwater")),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=embedded(document.data),
    )


def embedded(data: Struct) -> str:
    """Return data as JSON that no browser takes for markup, whatever it contains."""
    text = msgspec.json.encode(data).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def asset(name: str) -> str:
    """Return the text of a file in `assets` or, if it is not only for reports, in `data/pages`."""
    own = files(__package__).joinpath("assets", name)
    found = own if own.is_file() else files("lowwater").joinpath("data", "pages", name)
    return found.read_text(encoding="utf-8")


def utc_day(at: float) -> str:
    """Return the day of a moment, in UTC."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d}"


def utc_moment(at: float) -> str:
    """Return a moment to the minute, in UTC."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d %H:%M} UTC"


def _tile(tile: Tile) -> str:
    ours = ' class="ours"' if tile.is_ours else ""
    return (
        f'<li{ours}><div class="name">{escape(tile.name)}</div><div class="figure">{escape(tile.figure)}</div>'
        f'<div class="note">{escape(tile.note)}</div></li>'
    )


def _prices(models: Sequence[Model]) -> str:
    if not models:
        return ""
    names = ("model", "input", "cache read", "cache write", "output", "as of")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(map(_price_row, models))
    return (
        "<h3>Prices, in dollars per million tokens</h3>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="Prices"><table aria-label="Prices"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _price_row(model: Model) -> str:
    found = model.prices
    each = (found.input, found.cache_read, found.cache_write, found.output) if found else ()
    said = [_price(price) for price in each] or ["unknown"] * 4
    cells = (model.name, *said, model.as_of or "unknown")
    return f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in cells)}</tr>"


def _price(price: int) -> str:
    """Return a price with two decimals, or with more if it needs them."""
    whole = f"{price / _NANO_DOLLARS:.6f}".rstrip("0")
    return f"${price / _NANO_DOLLARS:.2f}" if len(whole.partition(".")[2]) < 2 else f"${whole}"


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
