"""`lowwater audit`: what recorded sessions cost, why their cache missed, and what compaction could do about it."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Literal, Protocol

import typer
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import INTERRUPTED, AsJson, Since, check_paths, noting_interrupts, say, write_page
from lowwater.cli.tables import (
    Plot,
    bar,
    draw_plot,
    fields_of,
    figures_table,
    net,
    page_width,
    print_json,
    print_page,
)
from lowwater.cli.wording import (
    CAUSE_WORDS,
    SPENDING_WORDS,
    amount,
    day,
    figure,
    fitted,
    from_the_end,
    moment,
    on_one_line,
    printable,
    project_name,
    read_since,
    session_name,
    share,
    short,
)
from lowwater.core.accounts.tool_schemas import server_of
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.lab.audit.carried import DEFINITION, PREAMBLE
from lowwater.lab.audit.damage import DAMAGE_COLUMNS, DAMAGE_MEANS, damage_says
from lowwater.lab.audit.files import AuditCache, AuditedFile, audit_files, stamp_of
from lowwater.lab.audit.findings import AuditedSession, AuditFigures, Carried, Cause, Native, PauseCosts
from lowwater.lab.audit.report import (
    AuditReport,
    Possible,
    ReportLine,
    by_day,
    by_model,
    by_project,
    by_tool,
    by_week,
    dearest,
    estimate_gaps,
    report_line,
    report_of,
)
from lowwater.lab.pages.audit import audit_page
from lowwater.logs.importers import FOLDERS, Progress, files_in, log_folders

_TOP = 5
_MAX_LINES = 30
"""Lines shown of a long list; --json has all of them."""
_WIDE_PAGE = 105
_MIN_NAME_WIDTH = 12
_UNDATED = "no time recorded"
_UNKNOWN_PROJECT = "no folder recorded"
_BY = {
    "session": "sessions",
    "model": "models",
    "project": "projects",
    "day": "days",
    "week": "weeks",
    "tool": "what filled the prompts, and its share of the input cost by size",
}
_UNNAMED_MODEL = "not named"
_OTHER_COLUMNS = 58
"""Terminal columns taken by everything but the session's name."""
GroupBy = Literal["model", "project", "session", "tool", "day", "week"]
_CENT, _DOLLAR = 10_000_000, 1_000_000_000
_MIN_DAYS_TO_PLOT = 3
_MAX_UNREAD_SHOWN = 3
_MIN_COMPACTIONS = 5
"""Versions with fewer compactions are only in --json and on the page."""
_MIN_SESSIONS_FOR_ACCURACY = 10
"""Below this many sessions, the accuracy of the predicted bills is not shown."""
Json = dict[str, object]


class _FilesRead(Struct, frozen=True, kw_only=True):
    files: Sequence[AuditedFile]
    interrupted: bool = False


class OnProgress(Protocol):
    """Called with the number of bytes read so far."""

    def __call__(self, progress: Progress, /) -> None:
        """Receive one progress update."""
        ...


def audit(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH…",
            help="Recorded sessions: files, or folders with all below them.",
        ),
    ] = None,
    *,
    by: Annotated[
        GroupBy, typer.Option(metavar="WHAT", help="model, project, session, tool, day or week.")
    ] = "model",
    since: Since = "",
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare with the period of the same length before --since.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Repeat whenever a log changes, until Ctrl-C.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read every file again, and cache no results.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write an HTML page to this file.")
    ] = None,
    with_contents: Annotated[
        bool,
        typer.Option(
            "--with-contents",
            help="Also name paths and commands repeated after a compaction; in the page, titles of sessions.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Show what recorded sessions cost, and what could be saved.

    Reads the logs of Claude Code, Codex, OpenCode, Gemini CLI, Copilot CLI,
    Hermes, pi and others; without a PATH, where these agents keep them. Costs
    are list prices of the day of each call, or unknown. A cache miss is a call
    that read less from the cache than the previous call left there; its cost
    is the difference to reading it. "misses" leaves out a session's first call.

    The next run reads only files that changed. Ctrl-C shows the results so far.
    JSON has nano-dollars, or null if unknown.

    lowwater audit ~/.codex/sessions --since 30d --by project
    lowwater audit --since 7d --compare
    lowwater audit ~/.claude/projects --html audit.html
    lowwater audit session.jsonl --json | jq .total.misses
    """
    now = time.time()
    begin = read_since(since, now) if since else None
    if compare and begin is None:
        raise BadInput("--compare needs --since, which says how long both periods are: --since 7d --compare")
    if watch and (json or html is not None or not sys.stdout.isatty()):
        raise BadInput("--watch needs a terminal, and goes with neither --json nor --html")
    paths = paths or _usual_places()
    check_paths(paths)
    kept = None if no_cache else AuditCache()
    before: AuditReport | None = None
    while True:
        stamps = _stamps(paths) if watch else ()
        found = _read_files(paths, kept=kept, with_contents=with_contents)
        report = report_of(found.files, since="" if begin is None else day(begin))
        if compare and begin is not None:
            before = report_of(found.files, since=_start_before(day(begin), day(now)), until=day(begin))
        if not report.sessions and not found.interrupted:
            raise BadInput(_nothing_found(report, begin))
        if html is not None:
            write_page(html, audit_page(report, with_contents=with_contents).encode())
        if json:
            print_json(audit_json(report, since=begin, interrupted=found.interrupted, before=before))
        else:
            if watch:
                Console().clear()
            pages = report_page(
                report, by=by, width=page_width(), interrupted=found.interrupted, before=before
            )
            print_page(pages)
        if found.interrupted:
            raise typer.Exit(INTERRUPTED)
        if not watch:
            return
        say(f"read at {time.strftime('%H:%M:%S')}; Ctrl-C ends it")
        while _stamps(paths) == stamps:
            time.sleep(_WATCHED_EVERY)


def _start_before(first: str, last: str) -> str:
    """Return the first day of the period before `first` that is as long as the one from `first` to `last`."""
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return (begin - (end - begin) - timedelta(days=1)).isoformat()


_WATCHED_EVERY = 2.0
"""Seconds between two checks whether a log has changed."""


def _stamps(paths: Sequence[Path]) -> Sequence[object]:
    """Return a value that differs once a log has changed, appeared or gone."""
    return [(path, stamp_of(path)) for path in files_in(paths)]


def _usual_places() -> list[Path]:
    """Return where agents keep their logs on this machine, and say so; raise BadInput if there are none."""
    home = Path.home()
    found = log_folders(os.environ, home)
    if not found:
        agents = ", ".join(dict.fromkeys(folder.agent for folder in FOLDERS))
        raise BadInput(f"no logs of {agents} are in their usual places: name the files or folders to read")
    for path, agent in found.items():
        short_path = f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
        say(f"reading {agent}: {on_one_line(short_path, 200)}")
    return list(found)


def _read_files(paths: Sequence[Path], kept: AuditCache | None, *, with_contents: bool) -> _FilesRead:
    files: list[AuditedFile] = []
    with noting_interrupts() as pressed:
        try:
            with progress_bar() as on_progress:
                audited = audit_files(
                    paths, day_of=day, kept=kept, on_progress=on_progress, with_contents=with_contents
                )
                for file in audited:
                    files.append(file)
                    if pressed:
                        break
        except KeyboardInterrupt:
            pressed.append(0)
    if pressed:
        say("interrupted; run it again to go on from here" if kept else "interrupted")
    return _FilesRead(files=files, interrupted=bool(pressed))


@contextmanager
def progress_bar() -> Iterator[OnProgress | None]:
    """Yield a callback that draws a progress bar on standard error; None if that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn(compact=True))
    with Bar(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task("", total=None)

        def on_progress(progress: Progress) -> None:
            drawn.update(task, completed=progress.read, total=progress.of)

        yield on_progress


def _nothing_found(report: AuditReport, begin: float | None) -> str:
    if begin is not None:
        return f"no recorded session has a call since {moment(begin)}"
    if not report.unread:
        return "no recorded session was found"
    first = report.unread[0]
    more = f", and {len(report.unread) - 1:,} more" if len(report.unread) > 1 else ""
    return f"no recorded session was found: {on_one_line(first.path, 200)} ({first.why}){more}"


def report_page(
    report: AuditReport, *, by: GroupBy, width: int, interrupted: bool, before: AuditReport | None = None
) -> Iterator[Table | Text]:
    """Yield the blocks of the whole page; `before` is the report on the previous period."""
    days = [line for line in by_day(report.sessions) if line.name]
    yield _head(report, days, interrupted=interrupted)
    if before is not None:
        yield _title("compared with the previous period of the same length")
        yield _comparison(before.total, report.total)
    if report.total.figures.cost:
        yield _title("where the money went")
        yield _spending(report.total, width)
    if any(missed.misses for missed in report.total.missed.values()):
        yield _title("tokens that a warm cache would have spared, and what they cost more than reading")
        yield _misses(report.total, width)
    if report.pauses.pauses:
        yield from _pauses(report.pauses, width)
    yield from _starts(report, width)
    yield _title(_BY[by])
    yield from tool_table(report, width=width) if by == "tool" else breakdown(report, by=by, width=width)
    if by != "session" and report.total.figures.cost:
        yield _title(f"dearest {counted(min(_TOP, len(report.sessions)), 'session')}")
        yield from breakdown(report, by="session", width=width, most=_TOP)
    if len(days) >= _MIN_DAYS_TO_PLOT:
        yield from _plot(days, width)
    yield from compactions_section(report, width=width)
    yield from damage_section(report, width=width)
    if report.possible is not None:
        yield from _estimate(report.possible, width)
    elif report.sessions:
        yield _title("what compaction could do")
        yield Text(estimate_gaps(report), style="bright_black")
    yield from _remarks(report)


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _head(report: AuditReport, days: list[ReportLine], *, interrupted: bool) -> Text:
    """Return the first three lines: what was paid, how much of it was avoidable and why, and the command that avoids it."""
    total = report.total.figures
    spent = "Nothing of it has a known price" if total.cost is None else f"{amount(total.cost)} were paid"
    when = "" if not days else f", {days[0].name}"
    when += f" to {days[-1].name}" if len(days) > 1 else ""
    stopped = ("interrupted: what was read so far\n", "bold yellow") if interrupted else ""
    return Text.assemble(
        stopped,
        (spent, "bold"),
        f": {counted(len(report.sessions), 'session')}, {counted(total.calls, 'call')}{when}",
        *_avoidable(report),
        (f"\n{_tokens(total)}", "bright_black"),
    )


def _comparison(before: ReportLine, now: ReportLine) -> Table:
    """Return the figures of two periods, and how much they changed."""
    table = figures_table("", figures=("before", "now", "change"))
    of, then = now.figures, before.figures
    rows: list[tuple[str, float | None, float | None, Callable[..., str]]] = [
        ("sessions", before.sessions, now.sessions, figure),
        ("calls", then.calls, of.calls, figure),
        ("tokens sent", then.prompt, of.prompt, short),
        ("cost", then.cost, of.cost, amount),
        ("cost of a call", _each(then), _each(of), amount),
        ("avoidable misses", before.lost, now.lost, amount),
    ]
    for name, was, is_now, said in rows:
        change = "–" if not was or is_now is None else f"{is_now / was - 1:+.0%}"
        table.add_row(name, said(was), said(is_now), change)
    cached = [f"{share(each.hit_share)}" for each in (then, of)]
    table.add_row("read from the cache", *cached, "")
    return table


def _each(of: AuditFigures) -> int | None:
    priced = of.calls - of.unpriced
    return None if of.cost is None or not priced else of.cost // priced


_COMMANDS = {"claude-code": "claude", "codex": "codex", "opencode": "opencode", "hermes": "hermes"}
"""How clients of which recordings were found are started."""
_CAUSE_REASONS: dict[Cause, str] = {
    "expired": "expired caches",
    "start_changed": "changes of tools, system prompt or first message",
    "evicted": "caches lost although nothing had changed",
    "compaction": "the client's own compactions",
    "prefix_edited": "messages that the client edited or dropped",
    "model_changed": "changes of the model",
    "uncached": "prompts sent without caching",
}


def _avoidable(report: AuditReport) -> Iterator[tuple[str, str]]:
    """Yield how much of the bill was avoidable, why, and the command that avoids it; nothing if that is not known."""
    possible, reasons = report.possible, []
    if possible is not None and possible.rent_or_buy < possible.recorded:
        less = possible.recorded - possible.rent_or_buy
        reasons.append(
            f"About {amount(less)} ({share(less / possible.recorded)}) avoidable: compact when it pays"
        )
    causes = {name: one.cost or 0 for name, one in report.total.missed.items() if name in _CAUSE_REASONS}
    worst = max(causes, key=lambda name: causes[name], default=None)
    if worst is not None and causes[worst] >= _CENT:
        reasons.append(f"{amount(causes[worst])} lost to {_CAUSE_REASONS[worst]}")
    if not reasons:
        return
    dear = max(report.sessions, key=lambda each: report_line(each).figures.cost or 0)
    client = _COMMANDS.get(dear.agent, "YOUR-AGENT")
    yield (f"\n{'; '.join(reasons)}\n", "bold yellow")
    yield ("Do that: ", "")
    yield (f"lowwater run -- {client}", "bold")
    yield (" · only see it: ", "")
    yield (f"lowwater run --shadow -- {client}", "bold")


def _tokens(total: AuditFigures) -> str:
    unpriced = f"; what {counted(total.unpriced, 'call')} cost is unknown" if total.unpriced else ""
    if not total.prompt:
        return f"no prompt's size was recorded{unpriced}"
    return (
        f"{short(total.prompt)} tokens sent, {share(total.hit_share)} read from the cache, "
        f"{short(total.output)} answered{unpriced}"
    )


def _spending(total: ReportLine, width: int) -> Table:
    table = figures_table("", "", figures=("", ""), header=False)
    parts = {words: getattr(total.spending, name) for name, words in SPENDING_WORDS.items()}
    whole, most = sum(parts.values()), max(parts.values())
    for words, cost in parts.items():
        if not cost:
            continue
        table.add_row(words, bar(cost, most, max(10, width - 44)), amount(cost), share(cost / whole))
    return table


def _misses(total: ReportLine, width: int) -> Table:
    table = figures_table("cause", figures=("calls", "tokens", "cost"))
    table.add_column(no_wrap=True)
    most = max((missed.cost or 0 for missed in total.missed.values()), default=0)
    room = max(4, width - 72)
    for cause, missed in sorted(total.missed.items(), key=lambda one: (-(one[1].cost or 0), -one[1].tokens)):
        style = "bright_black" if cause in ("first", "boundary") else "yellow"
        table.add_row(
            CAUSE_WORDS[cause],
            figure(missed.misses),
            short(missed.tokens),
            amount(missed.cost),
            bar(missed.cost or 0, most, room, style=style),
        )
    return table


def _starts(report: AuditReport, width: int) -> Iterator[Table | Text]:
    """Yield what the requests began with; if the logs have definitions of tools, those that were never called come first."""
    every = by_tool(report.sessions)
    start = next((one for one in every if one.name == PREAMBLE), None)
    tools = [one for one in every if one.name.startswith(DEFINITION)]
    whole = sum(one.cost for one in every)
    spent = sum(one.cost for one in tools) + (start.cost if start else 0)
    if not spent or not whole:
        return
    yield _title("what filled the requests before their first message")
    said = f"{amount(spent)}, {share(spent / whole)} of the input."
    if not tools:
        yield Text(
            f"{said} These logs have only its size, so it cannot be split into tools and servers; request logs have the definitions "
            "(`lowwater serve`, or a proxy in front of the client).",
            style="bright_black",
        )
        return
    tools.sort(key=lambda one: (one.calls > 0, -one.cost, one.name))
    table = figures_table(
        "tool", figures=("calls", "tokens sent", "cost", "share"), room=max(_MIN_NAME_WIDTH, width - 44)
    )
    servers = _by_server(tools)
    for one in (*tools[:_MAX_LINES], *servers):
        calls = figure(one.calls) if one.calls else "never"
        table.add_row(
            on_one_line(one.name.removeprefix(DEFINITION), 60),
            calls,
            short(one.tokens),
            amount(one.cost),
            share(one.cost / whole),
        )
    yield table
    unused = [one for one in tools if not one.calls]
    without = amount(sum(one.cost for one in unused))
    yield Text(
        f"{said} {counted(len(unused), 'tool')} of {len(tools):,} were never called: leaving them out would have saved {without}.",
        style="bright_black",
    )


def _by_server(tools: Sequence[Carried]) -> list[Carried]:
    """Return the definitions of each MCP server's tools, added up."""
    found: dict[str, Carried] = {}
    for one in tools:
        if server := server_of(one.name.removeprefix(DEFINITION)):
            known = found.get(server, Carried(name=f"all of {server}", calls=0, tokens=0, cost=0))
            found[server] = replace(
                known,
                calls=known.calls + one.calls,
                tokens=known.tokens + one.tokens,
                cost=known.cost + one.cost,
            )
    return sorted(found.values(), key=lambda one: (one.calls > 0, -one.cost, one.name))


def _pauses(pauses: PauseCosts, width: int) -> Iterator[Table | Text]:
    yield _title("what pauses cost, and what each choice would have cost")
    table = figures_table("", "", figures=("",), header=False)
    costs = {
        "nothing done": pauses.let_go,
        "the long lifetime": pauses.longer,
        "compacted in time": pauses.compacted,
        "kept warm": pauses.kept_warm,
        "by the rule": pauses.by_rule,
    }
    most = max(1, *(cost for cost in costs.values() if cost))
    for words, cost in costs.items():
        if cost is not None:
            style = "green" if words == "by the rule" else "cyan"
            table.add_row(
                words, bar(max(0, cost), most, max(10, width - 40), style=style), f"about {amount(cost)}"
            )
    yield table
    yield Text(
        f"{pauses.pauses:,} of {counted(pauses.calls, 'call')} came after the provider's default cache lifetime. The sums are what pauses cost beyond "
        "calls that find their prompt cached. Nothing done: everything is written again. The long lifetime: every write costs more. Compacted in time: "
        "a summary before the cache expires leaves little to write; what it loses is not counted. Kept warm: "
        f"{counted(pauses.pings, 'minimal call')}, as long as that pays (`--idle keep-warm`). By the rule: whichever is expected to cost least "
        "(`--idle auto`). All of it assumes that nothing else was compacted.",
        style="bright_black",
    )


def _titled(session: AuditedSession) -> str:
    """Return a session's name on the user's own terminal: when it began, and what the user said first."""
    began = "" if session.started_at is None else f"{day(session.started_at)[5:]} "
    return f"{began}{on_one_line(session.title, 60)}" if session.title else session_name(session)


def tool_table(report: AuditReport, *, width: int) -> Iterator[Table | Text]:
    """Yield what filled the prompts: results by tool, and everything else by kind."""
    found = by_tool(report.sessions)
    whole = sum(one.cost for one in found)
    titles = ("calls", "tokens sent", "cost", "share")
    table = figures_table("tool", figures=titles, room=max(_MIN_NAME_WIDTH, width - 44))
    for one in found[:_MAX_LINES]:
        calls = figure(one.calls) if one.calls else "–"
        part = share(one.cost / whole) if whole else "–"
        table.add_row(on_one_line(one.name, 60), calls, short(one.tokens), amount(one.cost), part)
    yield table
    if len(found) > _MAX_LINES:
        yield Text(f"and {len(found) - _MAX_LINES:,} more: --json has them all", style="bright_black")


class _NamedLine(Struct, frozen=True, kw_only=True):
    name: str
    line: ReportLine


def breakdown(report: AuditReport, *, by: str, width: int, most: int = _MAX_LINES) -> Iterator[Table | Text]:
    """Yield the table by session, model or day, and a note on how many lines it leaves out."""
    match by:
        case "session":
            sessions = dearest(report.sessions)
            named = [_NamedLine(name=_titled(each), line=report_line(each)) for each in sessions]
        case "model":
            named = [
                _NamedLine(name=line.name or _UNNAMED_MODEL, line=line) for line in by_model(report.sessions)
            ]
        case "project":
            lines = by_project(report.sessions)
            named = [
                _NamedLine(name=project_name(line.name) or _UNKNOWN_PROJECT, line=line) for line in lines
            ]
        case "week":
            named = [_NamedLine(name=line.name or _UNDATED, line=line) for line in by_week(report.sessions)]
        case _:
            named = [_NamedLine(name=line.name or _UNDATED, line=line) for line in by_day(report.sessions)]
    yield _table(named[-most:] if by in ("day", "week") else named[:most], by, width)
    if len(named) > most == _MAX_LINES:
        yield Text(f"and {len(named) - most:,} more: --json has them all", style="bright_black")


def _table(named: Sequence[_NamedLine], of: str, width: int) -> Table:
    is_wide, gap = width >= _WIDE_PAGE, 2 if width >= _WIDE_PAGE else 1
    titles = ["calls", "sent", "cached", "written", "cost", "misses"]
    titles = [*titles[:2], "plain", "read", *titles[2:4], "answers", *titles[4:]] if is_wide else titles
    titles = titles if of == "session" else ["sessions", *titles]
    rows = [_cells(each.line, is_wide=is_wide, is_session=of == "session") for each in named]
    taken = sum(max(map(len, column)) for column in zip(titles, *rows, strict=True))
    room = max(_MIN_NAME_WIDTH, width - taken - gap * (len(titles) + 1))
    table = figures_table(of, figures=titles, gap=gap, room=room)
    for each, cells in zip(named, rows, strict=True):
        shown = fitted(each.name, room) if of == "session" else from_the_end(each.name, room)
        table.add_row(Text(shown), *cells)
    return table


def _cells(line: ReportLine, *, is_wide: bool, is_session: bool) -> list[str]:
    of = line.figures
    cells = [figure(of.calls), short(of.prompt), share(of.hit_share), short(of.written)]
    if is_wide:
        cells = [*cells[:2], short(of.uncached), short(of.cache_read), *cells[2:], short(of.output)]
    cells += [amount(of.cost), "–" if line.lost is None else amount(line.lost)]
    return cells if is_session else [figure(line.sessions), *cells]


def _plot(days: list[ReportLine], width: int) -> Iterator[Text]:
    """Yield a bar chart of each day's cost; days without a session are gaps."""
    costs = {date.fromisoformat(line.name): line.figures.cost for line in days}
    first, last = min(costs), max(costs)
    every = [first + timedelta(days=at) for at in range((last - first).days + 1)]
    most = max(cost or 0 for cost in costs.values())
    if not most:
        return
    unit, named = (_DOLLAR, "dollars") if most >= 10 * _DOLLAR else (_CENT, "cents")
    values = [None if (cost := costs.get(each)) is None else round(cost / unit) for each in every]
    yield _title(f"{named} a day, {first} to {last}")
    yield from draw_plot(Plot(values=values), width=width, named="day")


def compactions_section(report: AuditReport, *, width: int) -> Iterator[Table | Text]:
    """Yield what the clients' own compactions did, and a table of those with the largest net effect."""
    of = report.compacted
    if not of.compactions:
        return
    often = 100 * of.compactions / max(1, report.total.figures.calls)
    yield Text(
        f"\n{counted(of.compactions, 'compaction')} by the clients themselves, {figure(often)} in 100 calls",
        style="bold",
    )
    yield _largest(report, width)
    sentences = []
    if of.net is not None:
        sentences.append(
            f"In all they cost {amount(of.cost)} and saved {amount(of.saved)} against carrying everything on: "
            f"net {amount(of.net)}. Where the call for the summary is not recorded, it is taken to have ridden the cache."
        )
    if of.late and of.calls_late is not None:
        sentences.append(
            f"{of.late:,} of {of.compactions:,} came later than rent-or-buy would have acted first, "
            f"by {of.calls_late:,.0f} calls in the median."
        )
    yield Text(" ".join(sentences), style="bright_black")


def _largest(report: AuditReport, width: int) -> Table:
    every = [(session, native) for session in report.sessions for native in session.natives]
    every.sort(key=lambda one: -abs(one[1].net or 0))
    room = max(_MIN_NAME_WIDTH, width - _OTHER_COLUMNS)
    titles = ("before", "after", "calls", "cost", "saved", "net", "late")
    table = figures_table("session", figures=titles, room=room)
    for session, native in every[:_TOP]:
        table.add_row(*_compaction_cells(session, native, room))
    return table


def _compaction_cells(session: AuditedSession, native: Native, room: int) -> list[str | Text]:
    known = native.summary_cost is not None and native.rewrite_cost is not None
    cost = (native.summary_cost or 0) + (native.rewrite_cost or 0) if known else None
    return [
        Text(from_the_end(session_name(session), room)),
        short(native.before),
        short(native.after),
        figure(native.served),
        amount(cost),
        amount(native.saved),
        net(native.net),
        "–" if native.earlier is None else figure(native.earlier),
    ]


def damage_section(report: AuditReport, *, width: int) -> Iterator[Table | Text]:
    """Yield what the clients' own compactions made the agents read or do again, beside stretches without a compaction."""
    if not report.damage:
        return
    yield _title("what those compactions made the agents read or do again")
    figures = ("compactions", "repeat", "calls lost", "to work", "they cost", "extra")
    table = figures_table("client", figures=figures, gap=2 if width >= _WIDE_PAGE else 1)
    shown = [line for line in report.damage if not line.version or line.compactions >= _MIN_COMPACTIONS]
    for line in shown[:_MAX_LINES]:
        table.add_row(
            f"  {line.version}" if line.version else line.client,
            figure(line.compactions),
            _beside(line.repeating_share, line.repeating_elsewhere, share),
            _beside(line.repeated, line.repeated_elsewhere, _calls),
            _beside(line.until_work, line.until_work_elsewhere, _calls),
            amount(line.repeated_cost),
            net(line.extra_cost),
            style="" if not line.version else "bright_black",
        )
    yield table
    clients = [damage_says(line) for line in report.damage if not line.version]
    yield Text("\n".join([*clients, DAMAGE_MEANS, DAMAGE_COLUMNS]), style="bright_black")
    for one in report.repeated[:_MAX_LINES]:
        where = f"{printable(one.session)[:_MIN_NAME_WIDTH]} call {one.call}: "
        yield Text(f"{where}{on_one_line(one.subject, max(_MIN_NAME_WIDTH, width - len(where)))}")


def _calls(calls: float) -> str:
    return f"{calls:.1f}"


def _beside(own: float | None, elsewhere: float | None, said: Callable[[float], str]) -> str:
    return "–" if own is None or elsewhere is None else f"{said(own)} / {said(elsewhere)}"


def _estimate(possible: Possible, width: int) -> Iterator[Table | Text]:
    yield _title("what compaction could do")
    table = figures_table("", "", figures=("",), header=False)
    costs = {
        "without any": possible.never,
        "as recorded": possible.recorded,
        "rent-or-buy": possible.rent_or_buy,
    }
    most = max(costs.values())
    for words, cost in costs.items():
        about = "" if words == "as recorded" else "about "
        style = "green" if words == "rent-or-buy" else "cyan"
        table.add_row(words, bar(cost, most, max(10, width - 40), style=style), f"{about}{amount(cost)}")
    yield table
    yield Text(
        f"{_rent_or_buy(possible)} An estimate: {counted(possible.sessions, 'session')} played again on recorded sizes and pauses, at the "
        "prices they had and with later uses of what was removed paid for, once as the client compacted and once under "
        'each rule; the difference counts. "Without any" compacts only where the window is full. Rent-or-buy is played on the sessions as numbers, '
        "with summaries by a model at the moment they are needed; `lowwater replay` plays the messages in the configuration that ships.",
        style="bright_black",
    )


def _rent_or_buy(possible: Possible) -> str:
    less = possible.recorded - possible.rent_or_buy
    if not possible.actions:
        return "Rent-or-buy would have left these sessions alone."
    saved = f"saved about {amount(less)} ({share(less / possible.recorded)})" if less > 0 else ""
    done = saved or f"cost about {amount(-less)} more"
    return f"Rent-or-buy would have {done} with {possible.actions:,} prunes and summaries."


def _remarks(report: AuditReport) -> Iterator[Text]:
    """Yield caveats about the figures: gaps in the estimate, accuracy, copied calls, unread files."""
    remarks = []
    if report.possible is not None and report.not_estimated:
        remarks.append(estimate_gaps(report))
    if report.accuracy is not None and report.accuracy.sessions >= _MIN_SESSIONS_FOR_ACCURACY:
        off = report.accuracy
        remarks.append(
            f"The cache rules foresee a session's input bill within {off.median_error:.1%} (median), "
            f"{off.p90_error:.0%} (nine of ten), from its sizes and times."
        )
    if report.copied:
        remarks.append(
            f"{counted(report.copied, 'call')} that forks and resumed sessions repeat are counted once."
        )
    if report.broken:
        where = (
            f", the first at {from_the_end(printable(report.broken_at[0]), 60)}" if report.broken_at else ""
        )
        remarks.append(f"{counted(report.broken, 'broken line')} left out{where}.")
    if report.unread:
        remarks.append(f"{counted(len(report.unread), 'file')} without a session or not read to the end:")
        remarks += [
            f"  {from_the_end(printable(one.path), 60)}: {on_one_line(one.why, 80)}"
            for one in report.unread[:_MAX_UNREAD_SHOWN]
        ]
    if report.kept:
        remarks.append(
            f"{report.kept:,} of {counted(report.files, 'file')} had not changed since they were read last."
        )
    if remarks:
        yield Text("\n" + "\n".join(remarks), style="bright_black")


def audit_json(
    report: AuditReport, *, since: float | None, interrupted: bool, before: AuditReport | None = None
) -> Json:
    """Return the report as JSON values; money is in nano-dollars, None where a price is unknown."""
    return {
        "interrupted": interrupted,
        "since": since,
        "files": report.files,
        "files_from_cache": report.kept,
        "broken_lines": report.broken,
        "broken_at": report.broken_at,
        "unread": [{"path": one.path, "why": one.why} for one in report.unread],
        "copied_calls": report.copied,
        "total": _line_json(report.total),
        **({} if before is None else {"before": _line_json(before.total)}),
        "models": [_line_json(line) for line in by_model(report.sessions)],
        "days": [_line_json(line) for line in by_day(report.sessions)],
        "projects": [_line_json(line) for line in by_project(report.sessions)],
        "tools": by_tool(report.sessions),
        "sessions": [_session_json(session) for session in dearest(report.sessions)],
        "compactions": report.compacted,
        "damage": report.damage,
        **({"repeated": report.repeated} if report.repeated else {}),
        "pauses": report.pauses,
        "possible": report.possible,
        "not_estimated": report.not_estimated,
        "accuracy": report.accuracy,
    }


def _line_json(line: ReportLine) -> Json:
    figures = line.figures
    tokens = ("prompt", "uncached", "cache_read", "cache_write", "cache_write_long", "output")
    return {
        **fields_of(line, "name", "sessions", "spending", "lost"),
        **fields_of(figures, "calls", *tokens, "hit_share", "cost"),
        "unpriced_calls": figures.unpriced,
        "misses": line.missed,
    }


def _session_json(session: AuditedSession) -> Json:
    return _line_json(report_line(session)) | {
        **fields_of(
            session, "agent", "path", "project", "model", "parent", "relation", "started_at", "ended_at"
        ),
        **fields_of(session, "peak_prompt", "foreseen", "pauses", "saving", "not_estimated"),
        "broken_lines": session.broken,
        "compactions": [_compaction_json(native) for native in session.natives],
    }


def _compaction_json(native: Native) -> Json:
    fields: Json = to_builtins(native)
    return fields | {"net": native.net}
