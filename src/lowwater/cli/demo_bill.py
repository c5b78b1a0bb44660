"""The demo's second bill: the same session under four policies, beside the cheapest schedule possible in hindsight."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowwater.core.wording import money
from lowwater.logs.recording import Recording

_OURS, _LEAST = "rent-or-buy", "optimum"


def print_hindsight(console: Console, recording: Recording) -> None:
    """Print what a session costs under a few policies and at least; one line if that cannot be computed here."""
    console.print(Text("\nwith hindsight", style="bold"))
    try:
        from lowwater.lab.replay.session import bill_of  # noqa: PLC0415  # numpy is an extra
    except ImportError:
        console.print(Text("  The cheapest schedule possible needs numpy: pip install 'lowwater[replay]'."))
        return
    console.print(
        "  The same session in numbers under four policies, and the cheapest schedule there was, rework paid for:"
    )
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="bright_black")
    for title in ("", "", "÷ optimum", "compactions", "largest prompt"):
        table.add_column(title, justify="left" if table.columns and not title else "right")
    for line in bill_of(recording, model=recording.model):
        style = "bold" if line.policy == _OURS else "bright_black" if line.policy == _LEAST else ""
        table.add_row(
            money(line.total, "usd"),
            line.policy,
            f"{line.over_optimum:.2f}",
            f"{line.compactions:,}",
            f"{line.peak:,}",
            style=style,
        )
    console.print(table)
