"""Drawing what fills a window: one bar, and a table for each reading."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from lowwater.core.accounts.contents import Contents, Share

_COLOURS = {
    "tools": "bright_black",
    "system": "blue",
    "user": "green",
    "assistant": "cyan",
    "thinking": "magenta",
    "tool calls": "yellow",
    "tool results": "red",
    "images": "bright_magenta",
    "documents": "bright_blue",
    "other": "white",
}


def draw(contents: Contents, context: int, width: int) -> Iterator[Table | Text]:
    """Yield the bar with its legend, then the tables by tool and age and the largest pieces."""
    yield _bar(contents, context, width)
    yield _legend(contents, context)
    if contents.by_tool:
        yield Text("\nby tool", style="bold")
        yield _shares(contents.by_tool[:10], contents.tokens, "results", width)
    yield Text("\nby age", style="bold")
    yield _shares(contents.by_age, contents.tokens, "messages", width)
    yield Text("\nlargest", style="bold")
    table = _table()
    for piece in contents.largest:
        share = f"{piece.tokens / max(contents.tokens, 1):.0%}"
        table.add_row(
            piece.label, f"{piece.tokens:,}", share, Text(f"message {piece.index}", style="bright_black")
        )
    yield table
    yield from _problems(contents)


def _bar(contents: Contents, context: int, width: int) -> Text:
    """Draw the whole window on one line; every kind that is there gets at least its share, rounded down."""
    bar = Text()
    whole = max(context, contents.tokens, 1)
    drawn = spent = 0
    for share in contents.by_kind:
        spent += share.tokens
        cells = round(width * spent / whole) - drawn
        bar.append("█" * cells, style=_COLOURS[share.label])
        drawn += cells
    bar.append("░" * (width - drawn), style="bright_black")
    return bar


def _legend(contents: Contents, context: int) -> Table:
    table = _table()
    for share in contents.by_kind:
        label = Text("■ ", style=_COLOURS[share.label]) + Text(share.label, style="default")
        pieces = Text(f"{share.count:,}", style="bright_black")
        table.add_row(label, f"{share.tokens:,}", f"{share.tokens / max(contents.tokens, 1):.0%}", pieces)
    free = context - contents.tokens
    if free >= 0:
        table.add_row(Text("░ free", style="bright_black"), f"{free:,}", "", "")
    else:
        table.add_row(Text("over the window", style="bold red"), f"{-free:,}", "", "")
    return table


def _shares(shares: Sequence[Share], whole: int, counted: str, width: int) -> Table:
    table = _table()
    widest = max((share.tokens for share in shares), default=1) or 1
    room = max(8, width - 62)
    for share in shares:
        bar = "▇" * round(room * share.tokens / widest)
        said = Text(
            f"{share.count:,} {counted if share.count != 1 else counted.removesuffix('s')}",
            style="bright_black",
        )
        table.add_row(share.label, f"{share.tokens:,}", f"{share.tokens / max(whole, 1):.0%}", said, bar)
    return table


def _table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(min_width=22, max_width=34, no_wrap=True)
    table.add_column(justify="right")
    table.add_column(justify="right", style="bright_black")
    table.add_column()
    table.add_column(style="red", no_wrap=True)
    return table


def _problems(contents: Contents) -> Iterator[Text]:
    broken = contents.unpaired
    for found, said in (
        (broken.calls, "calls were never answered"),
        (broken.results, "results answer no call"),
        (broken.repeated, "ids are used twice"),
    ):
        if found:
            places = ", ".join(f"message {index}" for index, _ in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            yield Text(f"\n{len(found)} {said}: {places}{more}", style="yellow")
