"""The numbers of `lowwater status` on a terminal: the page of one session."""

from collections.abc import Iterator

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from lowwater.cli.cache_words import cache_state
from lowwater.cli.cadence_page import LABEL, cadence_table, grid, net
from lowwater.cli.efficiency_words import costs_said, payback_said
from lowwater.cli.kept_words import ago, amount, on_one_line, share
from lowwater.cli.plots import Course, draw_course
from lowwater.core.accounts.advice import sentence
from lowwater.core.accounts.cadence import Cadence, turns_before
from lowwater.core.accounts.efficiency import Efficiency
from lowwater.core.events import Compaction
from lowwater.core.models.model import Model
from lowwater.core.stored import Account
from lowwater.core.wording import counted
from lowwater.session.status import Status

_SIDE_BY_SIDE = 112
_LEVELS = {"info": "cyan", "notice": "cyan", "warning": "yellow", "critical": "red"}


class Looked(Struct, frozen=True, kw_only=True):
    """All that is shown of one session."""

    account: Account
    status: Status
    model: Model
    efficiency: Efficiency
    cadence: Cadence

    @property
    def prompts(self) -> list[int | None]:
        """The size of the prompt at each turn; where its provider reported none, what was expected."""
        usages = (record.usage or record.expected for record in self.account.records)
        return [None if usage is None else usage.prompt for usage in usages]

    @property
    def compacted_before(self) -> list[int]:
        """For each compaction the number of turns that had been taken before it."""
        told = zip(self.account.events, turns_before(self.account), strict=True)
        return [turns for event, turns in told if isinstance(event, Compaction)]


def page(looked: Looked, *, width: int, now: float) -> Iterator[Table | Text]:
    """Yield everything to show of one session, a block each."""
    yield from _title(looked, width, now)
    yield Text()
    yield _now(looked, width, now)
    if any(looked.prompts):
        yield Text("\nprompt at each turn", style="bold")
        course = Course(
            values=looked.prompts, marked=looked.compacted_before, line=looked.status.threshold or None
        )
        yield from draw_course(course, width=width)
    saved, paced = _efficiency(looked.efficiency), cadence_table(looked.cadence)
    yield Text()
    if width >= _SIDE_BY_SIDE:
        both = Table.grid(padding=(0, 4, 0, 0), expand=True)
        both.add_column(ratio=1)
        both.add_column(ratio=1)
        both.add_row(saved, paced)
        yield both
    else:
        yield saved
        yield Text()
        yield paced
    for each in looked.efficiency.advice:
        yield Text(f"\n{sentence(each)}", style="yellow")


def _title(looked: Looked, width: int, now: float) -> Iterator[Text]:
    session, about = looked.account.session, looked.account.session.about
    room = max(20, width - 50)
    yield Text.assemble(
        (on_one_line(session.name, 200), "bold"), f" · {looked.status.model} · {looked.status.policy}"
    )
    told = [on_one_line(about.title, room)] if about.title else []
    told += [f"from {on_one_line(about.source, 20)}", f"opened {ago(session.opened_at, now)}"]
    told += [f"changed {ago(session.changed_at, now)}"]
    yield Text(" · ".join(told), style="bright_black")
    lineage = [f"continues {on_one_line(about.parent, 60)}"] if about.parent else []
    if about.ended_at is not None:
        lineage += [
            f"ended {ago(about.ended_at, now)}: {on_one_line(about.ended_because, 40) or 'no reason given'}"
        ]
    if lineage:
        yield Text(" · ".join(lineage), style="bright_black")


def _now(looked: Looked, width: int, now: float) -> Table:
    """Return the window as a bar, and the view, the cache and the costs in words."""
    status, total = looked.status, looked.efficiency.total
    table = grid()
    table.add_row("window", _window(status, width - LABEL))
    reached = status.prompt / status.threshold if status.threshold else None
    level = Text(f", level {status.level}", style=_LEVELS[status.level]) if status.level else Text()
    table.add_row("", Text(f"{status.prompt:,} tokens, {share(reached)} of the {status.acts_at}") + level)
    table.add_row("", Text(_legend(status), style="bright_black"))
    table.add_row("view", f"{status.messages:,} of {counted(status.history, 'message')}")
    table.add_row("cache", f"{status.caching}{cache_state(looked.account.records, looked.model, now)}")
    if total.turns:
        cached = (
            f", {share(total.cache_read_share)} read from cache" if total.cache_read_share is not None else ""
        )
        off = f" (foreseen within {total.foreseen_off:.1%})" if total.foreseen_off is not None else ""
        said = f"{total.turns:,} with {total.prompt:,} prompt tokens{cached}{off}, {total.output:,} output"
        table.add_row("turns", said)
        table.add_row("cost", costs_said(total))
    return table


def _legend(status: Status) -> str:
    if status.threshold == status.wall:
        named = "wall" if status.acts_at == "wall" else f"{status.acts_at} and wall"
        return f"┃ {named} {status.wall:,}   context {status.context:,}"
    return f"╎ {status.acts_at} {status.threshold:,}   ┃ wall {status.wall:,}   context {status.context:,}"


def _window(status: Status, width: int) -> Text:
    """Draw the context on one line: what is used, and where the threshold and the wall are."""
    whole = max(status.context, status.prompt, 1)
    used = round(width * status.prompt / whole)
    style = (
        "red" if status.prompt > status.wall else "yellow" if status.prompt >= status.threshold else "green"
    )
    cells = [("█", style)] * used + [("░", "bright_black")] * (width - used)
    for at, character, colour in ((status.threshold, "╎", "yellow"), (status.wall, "┃", "red")):
        cells[max(0, min(width - 1, round(width * at / whole) - 1))] = (character, colour)
    return Text.assemble(*cells)


def _efficiency(found: Efficiency) -> Table:
    total = found.total
    table = grid("efficiency")
    table.add_row("passes", f"{total.passes:,}, {total.reclaimed:,} tokens taken out of the prompt")
    table.add_row("saved", f"{total.saved:,} tokens not carried, over all calls")
    parts = f"summaries {amount(total.summary_cost)}, rewriting {amount(total.rewriting_cost)}"
    table.add_row("cost", f"{amount(total.compaction_cost)}: {parts}")
    table.add_row("net", net(total.net))
    if total.passes:
        table.add_row("payback", payback_said(found.repayment))
    return table
