"""`lowwater audit`: what recorded sessions cost, why their cache missed, and what compaction would have saved."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from lowwater.cli.audit_json import said
from lowwater.cli.audit_page import By, page
from lowwater.cli.audit_progress import progress_bar
from lowwater.cli.failing import INTERRUPTED, noting_interrupts, say
from lowwater.cli.kept_words import day, moment, on_one_line, read_since
from lowwater.cli.printing import page_width, print_json, print_page
from lowwater.errors import BadInput
from lowwater.lab.audit.files import AuditedFile, Kept, audit_files
from lowwater.lab.audit.report import Report, report_of
from lowwater.lab.pages.audit import audit_page


def audit(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH…", help="Recorded sessions: files, or folders with all below them."),
    ],
    *,
    by: Annotated[By, typer.Option(help="What the table has a line for.")] = "model",
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Only the days since then: 30d, 2w ago, or a day such as 2026-11-01.",
            show_default=False,
        ),
    ] = "",
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read every file again, and keep nothing of it.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page for a browser, too.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Show where the money of recorded sessions went, and what compaction would have saved.

    Reads what agents write down (Claude Code, Codex and others), found by
    content. Dollars are list prices of each call's day; a model whose price is
    not known gets none. A miss is a call that read less from the cache than
    the call before had left there; its cost is what that came to above
    reading. "Misses" in tables leaves the first call of a session out. What
    was found is kept, so that the next run reads only what changed; Ctrl-C
    shows what was read so far. In JSON money is in nano-dollars, and null if
    it is not known.

    lowwater audit ~/.claude/projects
    lowwater audit ~/.claude/projects ~/.codex/sessions --since 30d --by day
    lowwater audit ~/.claude/projects --html audit.html
    lowwater audit session.jsonl --json | jq .total.misses
    """
    begin = read_since(since, time.time()) if since else None
    _check(paths)
    found = _read(paths, kept=None if no_cache else Kept())
    report = report_of(found.files, since="" if begin is None else day(begin))
    if not report.sessions and not found.interrupted:
        raise BadInput(_nothing(report, begin))
    if html is not None:
        _write(html, report)
    if json:
        print_json(said(report, since=begin, interrupted=found.interrupted))
    else:
        print_page(page(report, by=by, width=page_width(), interrupted=found.interrupted))
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)


class _Found(Struct, frozen=True, kw_only=True):
    files: Sequence[AuditedFile]
    interrupted: bool = False


def _read(paths: Sequence[Path], kept: Kept | None) -> _Found:
    files: list[AuditedFile] = []
    with noting_interrupts() as pressed:
        try:
            with progress_bar() as tell:
                for file in audit_files(paths, day_of=day, kept=kept, on_progress=tell):
                    files.append(file)
                    if pressed:
                        break
        except KeyboardInterrupt:
            pressed.append(0)
    if pressed:
        say("interrupted; run it again to go on from here" if kept else "interrupted")
    return _Found(files=files, interrupted=bool(pressed))


def _write(place: Path, report: Report) -> None:
    try:
        place.write_text(audit_page(report), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{on_one_line(str(place), 200)} cannot be written: {error.strerror}") from None
    say(f"wrote {on_one_line(str(place), 200)}")


def _check(paths: Sequence[Path]) -> None:
    for path in paths:
        if not path.exists():
            raise BadInput(f"{on_one_line(str(path), 200)} is not there")


def _nothing(report: Report, begin: float | None) -> str:
    if begin is not None:
        return f"no recorded session has a call since {moment(begin)}"
    if not report.unread:
        return "no recorded session was found"
    first = report.unread[0]
    more = f", and {len(report.unread) - 1:,} more" if len(report.unread) > 1 else ""
    return f"no recorded session was found: {on_one_line(first.path, 200)} ({first.why}){more}"
