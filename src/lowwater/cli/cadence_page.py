"""The seven cadence metrics (docs/specification.md: K) on a terminal, and the grid that pages of sessions are laid out in."""

from rich.table import Table
from rich.text import Text

from lowwater.cli.kept_words import amount, figure
from lowwater.core.accounts.cadence import Cadence

LABEL = 10
"""Columns of a label with what is between it and its value."""


def cadence_table(of: Cadence) -> Table:
    """Return the seven cadence metrics, and what belongs to them."""
    table = grid("cadence", label=28)
    table.add_row("compactions per 100 turns", figure(of.events_per_100_turns))
    table.add_row("turns between them", figure(of.turns_between_events))
    table.add_row("tokens reclaimed by each", figure(of.reclaimed_per_event, places=0))
    table.add_row("earliest changed message", figure(of.earliest_changed))
    mean = (
        f"; a summary has {of.mean_summary_tokens:,.0f} tokens" if of.mean_summary_tokens is not None else ""
    )
    table.add_row("summary calls", f"{of.summary_calls:,}{mean}")
    table.add_row(
        "prunes per summary", f"{figure(of.prunes_per_summary)} ({of.prunes:,} to {of.summaries:,})"
    )
    table.add_row("prompt + summary tokens", figure(of.prompt_and_summary_tokens))
    if of.last_mode:
        table.add_row("last mode", of.last_mode)
    if of.skips:
        table.add_row(
            "left as it was", ", ".join(f"{code} {times:,}" for code, times in list(of.skips.items())[:3])
        )
    return table


def net(nano: int | None) -> Text:
    """Return what was saved in the end, red if it was a loss."""
    return Text(
        amount(nano), style="red" if nano is not None and nano < 0 else "green" if nano else "default"
    )


def grid(title: str = "", *, label: int = LABEL) -> Table:
    """Return an empty table of labels and values."""
    table = Table(
        box=None,
        show_header=False,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        title=title or None,
        title_justify="left",
        title_style="bold",
    )
    table.add_column(style="bright_black", no_wrap=True, width=label - 2)
    table.add_column()
    return table
