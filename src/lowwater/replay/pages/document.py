"""One page with all it needs inside: style, scripts, data, and a policy by which browsers load nothing else."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template

import msgspec
from msgspec import Struct

from lowwater.core.models.model import Model

_STYLES = ("colours.css", "layout.css", "controls.css", "charts.css", "tables.css", "media.css")
_SHARED = ("base.js", "frame.js", "lines.js", "areas.js", "labels.js", "marks.js", "table.js", "theme.js")
_OWN: Mapping[str, tuple[str, ...]] = {"audit": ("audit.js",), "replay": ("timelines.js", "replay.js")}
_NANO = 1_000_000
"""Prices in nano-dollars per 1,000 tokens for one dollar per million."""


class Tile(Struct, frozen=True, kw_only=True):
    """One figure at the top of a page."""

    name: str
    figure: str
    note: str = ""
    is_ours: bool = False


class Document(Struct, frozen=True, kw_only=True):
    """What a page says, as plain text; nothing in it is markup."""

    report: str
    """`audit` or `replay`: the template of that name and its scripts."""
    headline: str
    lead: str
    tiles: Sequence[Tile]
    texts: Mapping[str, str]
    """The template's own places."""
    notes: Sequence[str]
    """How it was measured, and what is estimated."""
    models: Sequence[Model] = ()
    """Those whose prices are shown."""
    made_at: float
    data: Struct


def written(document: Document) -> str:
    """Return the page."""
    style = "\n".join(map(asset, _STYLES))
    parts = map(asset, (*_SHARED, *_OWN[document.report]))
    script = "\n".join(["(() => {", '"use strict";', *parts, "})();"])
    texts = {name: escape(text) for name, text in document.texts.items()}
    return Template(asset("page.html")).substitute(
        title=escape(f"Lowwater {document.report} · {day(document.made_at)}"),
        kind=escape(document.report),
        headline=escape(document.headline),
        lead=escape(document.lead),
        tiles="".join(map(_tile, document.tiles)),
        sections=Template(asset(f"{document.report}.html")).substitute(texts),
        notes="".join(f"<li>{escape(note)}</li>" for note in document.notes),
        prices=_prices(document.models),
        made=moment(document.made_at),
        version=escape(version("lowwater")),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=embedded(document.data),
    )


def embedded(data: Struct) -> str:
    """Return data as JSON that no browser takes for markup, whatever names are in it."""
    text = msgspec.json.encode(data).decode()
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def asset(name: str) -> str:
    """Return the text of a file that pages are made of."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def day(at: float) -> str:
    """Return the day of a moment, in UTC."""
    return f"{datetime.fromtimestamp(at, tz=UTC):%Y-%m-%d}"


def moment(at: float) -> str:
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
    names = ("input", "cache read", "cache write", "output", "as of")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("model", *names))
    rows = "".join(_price_row(model, names) for model in models)
    return (
        "<h3>Prices, in dollars per million tokens</h3>"
        f'<table aria-label="Prices"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


def _price_row(model: Model, names: Sequence[str]) -> str:
    found = model.prices
    each = (found.input, found.cache_read, found.cache_write, found.output) if found else ()
    said = [_price(price) for price in each] or ["unknown"] * 4
    cells = zip(names, (*said, model.as_of or "unknown"), strict=True)
    named = "".join(f'<td data-name="{name}">{escape(text)}</td>' for name, text in cells)
    return f"<tr><td>{escape(model.name)}</td>{named}</tr>"


def _price(price: int) -> str:
    """Return a price in cents, or as exact as it is below them."""
    whole = f"{price / _NANO:.6f}".rstrip("0")
    return f"${price / _NANO:.2f}" if len(whole.partition(".")[2]) < 2 else f"${whole}"


def _hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
