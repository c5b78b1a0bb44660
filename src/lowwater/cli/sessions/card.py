"""One kept session on a page."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.cli.kept_words import ago, amount, figure, moment, on_one_line, printable
from lowwater.cli.sessions.costs import Costs
from lowwater.core.accounts.cadence import Cadence
from lowwater.core.stored import About
from lowwater.core.wording import counted

_LINES = 6
"""Lines of a system prompt that are shown unless all are wanted."""
_NAMES = 8
"""Tools and children that are named."""


class Child(Struct, frozen=True, kw_only=True):
    """A session that continues this one."""

    name: str
    title: str


class ModelSpan(Struct, frozen=True, kw_only=True):
    """A model, and since when it was used."""

    model: str
    since: float


class Shown(Struct, frozen=True, kw_only=True):
    """So many messages, and their size as counted when they came."""

    messages: int
    tokens: int


class Card(Struct, frozen=True, kw_only=True):
    """What `sessions show --json` prints; times are seconds since the epoch, money is in nano-dollars, null if not known."""

    name: str
    about: About
    has_parent: bool
    """Whether the session it continues is still kept."""
    children: tuple[Child, ...]
    model: str
    models: tuple[ModelSpan, ...]
    vocabulary: str
    opened_at: float
    changed_at: float
    entries: int
    turns: int
    compactions: int
    checkpoints: int
    history: Shown
    view: Shown
    system: str
    tools: tuple[str, ...]
    preamble_tokens: int
    costs: Costs
    cost: int | None
    cadence: Cadence


def draw(card: Card, *, now: float, full: bool) -> Iterator[RenderableType]:
    """Yield the page, block by block."""
    title = f" · {on_one_line(card.about.title, 80)}" if card.about.title else ""
    yield Text(on_one_line(card.name, 200), style="bold") + Text(title)
    yield _grid([*_origin(card, now), *_models(card), *_sizes(card), *_costs(card)])
    if card.cadence.events:
        yield Text("\ncadence", style="bold")
        yield _grid(_cadence(card.cadence))
    if card.system:
        yield Text("\nsystem prompt", style="bold")
        yield Padding(_system(card.system, full=full), (0, 0, 0, 2), expand=False)


def _grid(rows: Sequence[tuple[str, str]]) -> Padding:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, said in rows:
        grid.add_row(label, Text(said))
    return Padding(grid, (0, 0, 0, 2), expand=False)


def _origin(card: Card, now: float) -> Iterator[tuple[str, str]]:
    about = card.about
    yield "source", on_one_line(about.source, 80)
    yield "opened", _when(card.opened_at, now)
    yield "changed", _when(card.changed_at, now)
    if about.ended_at is not None:
        because = f", by {on_one_line(about.ended_because, 80)}" if about.ended_because else ""
        yield "ended", f"{_when(about.ended_at, now)}{because}"
    if about.parent:
        yield "continues", on_one_line(about.parent, 80) + ("" if card.has_parent else " (no longer kept)")
    for number, child in enumerate(card.children[:_NAMES]):
        named = f" · {on_one_line(child.title, 60)}" if child.title else ""
        yield "" if number else "continued by", on_one_line(child.name, 200) + named
    if len(card.children) > _NAMES:
        yield "", f"and {len(card.children) - _NAMES:,} more"


def _when(at: float, now: float) -> str:
    return f"{moment(at)}, {ago(at, now)}" if at else "never"


def _models(card: Card) -> Iterator[tuple[str, str]]:
    for number, span in enumerate(card.models):
        yield "" if number else "models", f"{on_one_line(span.model, 60)} since {moment(span.since)}"
    if card.models and card.models[-1].model != card.model:
        yield "", f"{on_one_line(card.model, 60)} again, by a rewind"


def _sizes(card: Card) -> Iterator[tuple[str, str]]:
    yield "history", f"{_size(card.history)} in {counted(card.turns, 'turn')}"
    left = f", {card.view.tokens / card.history.tokens:.0%} of it" if card.history.tokens else ""
    yield "view", f"{_size(card.view)}{left}; counted in {card.vocabulary or 'no vocabulary'}"
    if card.preamble_tokens:
        yield "before it", f"system prompt and tools, {counted(card.preamble_tokens, 'token')}"
    if card.tools:
        more = f" and {len(card.tools) - _NAMES:,} more" if len(card.tools) > _NAMES else ""
        names = ", ".join(on_one_line(tool, 40) for tool in card.tools[:_NAMES])
        yield "tools", f"{names}{more}"
    yield "compactions", f"{card.compactions:,}, {counted(card.checkpoints, 'checkpoint')}"


def _size(shown: Shown) -> str:
    return f"{counted(shown.messages, 'message')}, {counted(shown.tokens, 'token')}"


def _costs(card: Card) -> Iterator[tuple[str, str]]:
    if not card.turns and card.costs.total == 0:
        yield "cost", "no call was recorded"
        return
    costs = card.costs
    parts = f"calls {amount(costs.calls)}, summaries {amount(costs.summaries)}" if card.cadence.events else ""
    yield "cost", amount(costs.total) + (f" ({parts})" if parts else "")
    if card.cadence.events:
        yield "untouched", f"{amount(costs.untouched)} had nothing been compacted, about"


def _cadence(found: Cadence) -> list[tuple[str, str]]:
    return [
        ("events per 100 turns", figure(found.events_per_100_turns)),
        ("turns between events", figure(found.turns_between_events)),
        ("summary calls", figure(found.summary_calls)),
        ("reclaimed per event", f"{figure(found.reclaimed_per_event, places=0)} tokens"),
        ("prompts and summaries", f"{figure(found.prompt_and_summary_tokens)} tokens"),
        ("earliest change", f"item {figure(found.earliest_changed)}"),
        (
            "prunes per summary",
            f"{figure(found.prunes_per_summary)} ({found.prunes:,} to {found.summaries:,})",
        ),
    ]


def _system(text: str, *, full: bool) -> Text:
    lines = printable(text).strip().split("\n")
    if full or len(lines) <= _LINES:
        return Text("\n".join(lines))
    rest = f"\n… {counted(len(lines) - _LINES, 'line')} more; --full shows them"
    return Text("\n".join(lines[:_LINES])) + Text(rest, style="bright_black")
