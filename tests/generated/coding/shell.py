"""What shell commands print about a repository: listings, searches, git."""

from collections.abc import Sequence
from datetime import UTC, datetime

from tests.generated.coding.workspace import Hit, Workspace
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon
from tests.generated.words import PEOPLE


def list_folder(draw: Draw, workspace: Workspace, folder: str) -> str:
    """Return `ls -la` of a folder, real sizes for what is in it."""
    inside = [path.removeprefix(folder) for path in workspace.paths if path.startswith(folder)]
    names = dict.fromkeys(path.partition("/")[0] + ("/" if "/" in path else "") for path in inside)
    lines = [f"total {draw.between(20, 400)}"]
    for name in names:
        month, day, clock = (
            draw.one(("Mar", "Apr", "May")),
            draw.between(1, 28),
            f"{draw.between(7, 19):02}:{draw.between(0, 59):02}",
        )
        if name.endswith("/"):
            lines.append(
                f"drwxr-xr-x {draw.between(2, 9):2} dev  dev    4096 {month} {day:2} {clock} {name[:-1]}"
            )
        else:
            size = sum(len(line) + 1 for line in workspace.lines(folder + name))
            lines.append(f"-rw-r--r--  1 dev  dev  {size:6} {month} {day:2} {clock} {name}")
    return "\n".join(lines)


def find_files(paths: Sequence[str]) -> str:
    """Return `find` over some paths."""
    return "\n".join(f"./{path}" for path in paths)


def count_lines(workspace: Workspace, paths: Sequence[str]) -> str:
    """Return `wc -l` over some paths."""
    counts = [(len(workspace.lines(path)), path) for path in paths]
    lines = [f"{count:7} {path}" for count, path in counts]
    return "\n".join([*lines, f"{sum(count for count, _ in counts):7} total"])


def show_hits(hits: Sequence[Hit], *, most: int = 200) -> str:
    """Return search results as `path:line:text`."""
    lines = [f"{hit.path}:{hit.line}:{hit.text}" for hit in hits[:most]]
    if len(hits) > most:
        lines.append(f"[{len(hits) - most} more matches not shown]")
    return "\n".join(lines) or "No matches found"


def show_status(workspace: Workspace, branch: str) -> str:
    """Return `git status`."""
    changed = workspace.changed()
    old = [path for path in changed if not workspace.is_new(path)]
    new = [path for path in changed if workspace.is_new(path)]
    lines = [f"On branch {branch}"]
    if old:
        lines += [
            "Changes not staged for commit:",
            '  (use "git add <file>..." to update what will be committed)',
        ]
        lines += [f"\tmodified:   {path}" for path in old]
    if new:
        lines += ["", "Untracked files:", '  (use "git add <file>..." to include in what will be committed)']
        lines += [f"\t{path}" for path in new]
    if not changed:
        lines.append("nothing to commit, working tree clean")
    return "\n".join(lines)


def show_diff(draw: Draw, workspace: Workspace, paths: Sequence[str]) -> str:
    """Return `git diff` of some paths."""
    lines: list[str] = []
    for path in paths:
        lines += [
            f"diff --git a/{path} b/{path}",
            f"index {draw.hex(7)}..{draw.hex(7)} 100644",
            *workspace.diff(path),
        ]
    return "\n".join(lines)


def show_stat(workspace: Workspace, paths: Sequence[str]) -> str:
    """Return `git diff --stat`."""
    lines: list[str] = []
    added = removed = 0
    for path in paths:
        diff = workspace.diff(path)[2:]
        plus = sum(line.startswith("+") for line in diff)
        minus = sum(line.startswith("-") for line in diff)
        added, removed = added + plus, removed + minus
        lines.append(f" {path:60} | {plus + minus:4} {'+' * min(plus, 30)}{'-' * min(minus, 30)}")
    return "\n".join([*lines, f" {len(paths)} files changed, {added} insertions(+), {removed} deletions(-)"])


def show_log(lexicon: Lexicon, count: int, until: float, *, stat: Sequence[str] = ()) -> str:
    """Return `git log` of `count` commits before `until`; with `stat` each names some of those paths."""
    draw = lexicon.draw
    lines: list[str] = []
    time = until
    for _ in range(count):
        time -= draw.within(600, 90_000)
        if not stat:
            lines.append(f"{draw.hex(8)} {datetime.fromtimestamp(time, UTC):%Y-%m-%d} {lexicon.commit()}")
            continue
        author = draw.one(PEOPLE)
        address = author.split()[0].lower()
        lines += [f"commit {draw.hex(40)}", f"Author: {author} <{address}@example.com>"]
        lines += [
            f"Date:   {datetime.fromtimestamp(time, UTC):%a %b %d %H:%M:%S %Y} +0000",
            "",
            f"    {lexicon.commit()}",
            "",
        ]
        lines += [f"    {lexicon.remark().capitalize()}.", ""] if draw.chance(0.4) else []
        lines += [f" {path} | {draw.between(1, 120)} +-" for path in draw.some(stat, draw.between(1, 5))] + [
            ""
        ]
    return "\n".join(lines).rstrip()
