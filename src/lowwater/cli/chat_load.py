"""The status line of `lowwater chat`: how far the prompt is from its threshold, the bill, the cache."""

from collections.abc import Sequence

from rich.text import Text

from lowwater.cli.kept_words import amount, on_one_line
from lowwater.cli.model_words import short
from lowwater.core.wording import counted
from lowwater.session.status import Status
from lowwater.settings import WarningLevels

_BAR = 16
_COLOURS = {None: "green", "info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "red"}
_MARKS = (("info", "cyan"), ("notice", "cyan"), ("warning", "yellow"), ("critical", "red"))
_BETWEEN = Text(" · ", style="bright_black")


def load_line(status: Status, levels: WarningLevels, *, is_scripted: bool, width: int) -> Text:
    """Return the status line; what does not fit into the width is left out, the least important first."""
    share = status.prompt / status.threshold if status.threshold else 0.0
    colour = _COLOURS[status.level]
    named = Text(f"{status.level} ", style=colour) if status.level else Text()
    load = Text.assemble(
        load_bar(share, levels, colour),
        (f" {share:.0%}", f"bold {colour}"),
        f" of {short(status.threshold)} ",
        named,
    )
    load.rstrip()
    cost = amount(status.totals.cost)
    bill = Text(f"{cost} as if" if is_scripted else cost)
    others = [
        Text(on_one_line(status.model, 30), style="bold"),
        Text(f"cache {status.caching}"),
        Text(counted(status.compaction_count, "compaction")),
        Text(on_one_line(status.session, 30), style="bright_black"),
    ]
    return _fitting([load, bill, *others], width)


def load_bar(share: float, levels: WarningLevels, colour: str) -> Text:
    """Return a bar that is full at the threshold, with a mark at each warning level that is still ahead."""
    used = max(0, min(_BAR, round(_BAR * share)))
    cells = [("█", colour)] * used + [("░", "bright_black")] * (_BAR - used)
    for name, mark in _MARKS:
        level: float | None = getattr(levels, name)
        if level is not None and share < level < 1:
            cells[max(used, int(_BAR * level))] = ("┊", mark)
    return Text.assemble(*cells)


def _fitting(pieces: Sequence[Text], width: int) -> Text:
    line = pieces[0].copy()
    for piece in pieces[1:]:
        if line.cell_len + _BETWEEN.cell_len + piece.cell_len <= width:
            line = line + _BETWEEN + piece
    return line
