"""The ways a coding agent gets something done, each as a run of tool calls."""

from collections.abc import Iterator

from tests.generated.code.module import name_cases, outline_module, write_module, write_tests
from tests.generated.coding import builds, services, shell
from tests.generated.coding.desk import Desk
from tests.generated.coding.testruns import Failure, break_test
from tests.generated.steps import Act, Call

_NIGHT = 1_778_400_000.0


def explore(desk: Desk) -> Iterator[Act]:
    """Get to know the repository."""
    draw, workspace = desk.draw, desk.workspace
    folder = desk.module.path.rpartition("/")[0] + "/"
    calls = [desk.run("ls -la", shell.list_folder(draw, workspace, "")), desk.read("README.md")]
    yield desk.act(calls, "the layout of the repository")
    if draw.chance(0.6):
        paths = [path for path in workspace.paths if path.endswith(desk.project.main.suffix)]
        yield desk.act(
            [desk.run(f"find . -name '*{desk.project.main.suffix}' | sort", shell.find_files(paths))]
        )
    sizes = shell.count_lines(workspace, [path for path in workspace.paths if path.startswith(folder)])
    yield desk.act([desk.run(f"wc -l {folder}*", sizes), desk.search(desk.symbol())], f"`{folder}`")


def look_around(desk: Desk) -> Iterator[Act]:
    """Read the module at hand and what it is connected with."""
    draw, module = desk.draw, desk.module
    match draw.below(4):
        case 0:
            yield desk.act([desk.read(module.path), desk.read(module.test_path)])
        case 1:
            yield desk.act([desk.read(module.path)])
            yield desk.act([desk.search(desk.symbol())], f"the callers of `{desk.symbol()}`")
        case 2:
            yield desk.act([desk.search(desk.symbol()), desk.read(module.path)])
        case _:
            yield desk.act([desk.search(desk.memory.recall("symbol", desk.symbol()))], "where that is used")
    if draw.chance(0.12):
        paper = draw.one(desk.project.papers)
        yield desk.act([desk.read(paper)], f"`{paper}`")
    if module.outline.uses and draw.chance(0.4):
        others = draw.some(module.outline.uses, draw.between(1, 2))
        yield desk.act([desk.read(other.path) for other in others], f"`{others[0].path}`")


def fix_test(desk: Desk, failure: Failure) -> Iterator[Act]:
    """See a test fail, find out why, change the source until it passes."""
    draw, module = desk.draw, desk.turn_to(failure.module)
    yield desk.act(
        [desk.test(module, [failure], reach=draw.one(("file", "folder", "all")))], f"`{failure.case}`"
    )
    reads = [desk.read(module.path, failure.source_line)]
    if draw.chance(0.3):
        reads.append(desk.read(module.test_path, failure.test_line))
    yield desk.act(reads, f"`{module.path}` around line {failure.source_line}")
    if draw.chance(0.6):
        yield from look_around(desk)
    for _ in range(draw.weighted(((0, 5), (1, 4), (2, 2)))):
        yield from _attempt(desk, failure)
        again = break_test(draw, desk.lexicon, desk.workspace, module)
        yield desk.act([desk.test(module, [again])], f"`{again.case}` again")
    yield from _attempt(desk, failure)
    yield desk.act([desk.test(module)], "the tests once more")
    if draw.chance(0.35):
        yield desk.act([desk.test(module, reach="all")], "the whole suite")


def _attempt(desk: Desk, failure: Failure) -> Iterator[Act]:
    draw, path = desk.draw, failure.module.path
    if draw.chance(0.1):
        yield desk.act([desk.misplaced_patch(path)])
        yield desk.act([desk.read(path, failure.source_line)], f"`{path}` as it is now")
    for _ in range(draw.weighted(((1, 5), (2, 3), (3, 1)))):
        if draw.chance(0.15):
            yield desk.act([desk.patch(path, failure.source_line), desk.patch(failure.module.test_path)])
        else:
            yield desk.act([desk.patch(path, failure.source_line)])
    if draw.chance(0.3):
        yield desk.act([desk.read(path, failure.source_line)], f"`{path}` after the change")


def build_feature(desk: Desk) -> Iterator[Act]:
    """Write a new module with tests and use it from those that are there."""
    draw, module, project = desk.draw, desk.module, desk.project
    yield from look_around(desk)
    entity = desk.lexicon.thing()
    folder = module.path.rpartition("/")[0]
    path = f"{folder}/{'_'.join(entity)}_{draw.hex(2)}{module.dialect.suffix}"
    outline = outline_module(desk.lexicon, path, entity, [module.outline])
    yield desk.act(
        [desk.write(path, write_module(desk.lexicon, module.dialect, outline))], f"a new file `{path}`"
    )
    for _ in range(draw.between(1, 4)):
        yield desk.act([desk.patch(module.path)])
    yield from check_types(desk)
    cases = name_cases(desk.lexicon, module.dialect, outline)[: draw.between(2, 6)]
    test_path = module.dialect.test_path(path)
    lines = write_tests(desk.lexicon, module.dialect, outline, cases)
    yield desk.act([desk.write(test_path, lines)], f"tests in `{test_path}`")
    near = [m for m in project.modules if m.dialect is module.dialect]
    if draw.chance(0.55):
        yield from fix_test(desk, break_test(draw, desk.lexicon, desk.workspace, draw.one(near)))
    else:
        yield desk.act([desk.test(module, reach="folder")], "the tests")


def check_types(desk: Desk) -> Iterator[Act]:
    """Run the compiler or type checker until it is content."""
    draw, module = desk.draw, desk.module
    language = module.dialect.language
    near = [
        m for m in desk.project.modules if m.dialect is module.dialect and m.path.startswith(module.path[:8])
    ]
    if draw.chance(0.6):
        complaints = builds.complain(
            desk.lexicon, desk.workspace, [module, *near[:3]], max(1, int(draw.skewed(3, 0.9, most=60)))
        )
        desk.memory.note("error", complaints[0].partition(": ")[2])
        output = builds.fail(language, complaints)
        failed = draw.chance(0.7)
        yield desk.act(
            [desk.run(builds.COMMANDS[language], output, failed=failed, seconds=draw.within(2, 40))],
            "the types",
        )
        for _ in range(draw.between(1, 2)):
            yield desk.act([desk.patch(module.path)])
    output = builds.succeed(language, draw.between(40, 90))
    yield desk.act(
        [desk.run(builds.COMMANDS[language], output, seconds=draw.within(2, 40))], "the types again"
    )


def rename(desk: Desk, old: str, new: str) -> Iterator[Act]:
    """Replace a name wherever it stands alone on its line, file by file."""
    yield desk.act([desk.search(old)], f"every use of `{old}`")
    for hit in desk.workspace.search(old, most=12):
        text = "\n".join(desk.workspace.lines(hit.path))
        if text.count(hit.text) == 1 and old in hit.text:
            desk.memory.note("path", hit.path)
            yield desk.act([desk.replace(hit.path, hit.text, hit.text.replace(old, new))], f"`{hit.path}`")
    yield desk.act([desk.search(old), desk.search(new)], f"what is left of `{old}`")
    yield desk.act([desk.test(desk.module, reach="folder")], "the tests")


def investigate(desk: Desk) -> Iterator[Act]:
    """Follow a fault from the log to the source."""
    draw, lexicon, memory = desk.draw, desk.lexicon, desk.memory
    failure = break_test(draw, lexicon, desk.workspace, desk.module)
    start = _NIGHT + draw.between(0, 86_400)
    trace = [
        f"    at {failure.function} ({desk.module.path}:{failure.source_line})",
        f"    at {desk.symbol()} ({desk.module.test_path}:12)",
    ]
    memory.note("error", failure.summary)
    log = f"logs/{lexicon.noun()}-{draw.between(1, 9)}.log"
    output = services.write_log(lexicon, int(draw.skewed(60, 1.2, most=560)), start, failure.summary, trace)
    yield desk.act([desk.run(f"tail -n 500 {log}", output)], f"`{log}`")
    for _ in range(draw.between(1, 3)):
        yield desk.act([_ask_service(desk) for _ in range(draw.between(1, 3))], "the running service")
    yield desk.act([desk.search(desk.symbol()), desk.read(desk.module.path, failure.source_line)])
    commits = shell.show_log(
        lexicon, draw.between(5, 20), _NIGHT, stat=desk.workspace.paths if draw.chance(0.3) else ()
    )
    memory.note("id", commits.removeprefix("commit ")[:8])
    yield desk.act([desk.run(f"git log -- {desk.module.path}", commits)], "what changed lately")
    if draw.chance(0.7):
        yield desk.act([desk.patch(desk.module.path, failure.source_line)])
        yield desk.act([desk.test(desk.module)], "the tests")


def _ask_service(desk: Desk) -> Call:
    draw, lexicon = desk.draw, desk.lexicon
    rare = f"{lexicon.noun()[:3]}_{draw.hex(10)}"
    match draw.below(6):
        case 0:
            output = f"curl: (7) Failed to connect to localhost port {draw.between(3000, 9999)} after 2 ms: Couldn't connect to server"
            return desk.run(f"curl -s localhost:8080/{lexicon.noun()}", output, failed=True)
        case 1 | 2:
            query = f"select * from {lexicon.noun()}s where {lexicon.noun()} is not null order by updated_at desc"  # never run
            return desk.run(
                f'psql -c "{query}"', services.write_table(lexicon, int(draw.skewed(9, 0.9, most=140)))
            )
        case _:
            desk.memory.note("id", rare)
            answer = services.write_json(lexicon, int(draw.skewed(4, 0.9, most=60)), rare)
            return desk.run(
                f"curl -s localhost:8080/v1/{lexicon.noun()}?limit=50", answer, seconds=draw.within(0.1, 4)
            )


def review(desk: Desk, *, commit: bool) -> Iterator[Act]:
    """Look at the diff, and commit it."""
    draw, workspace = desk.draw, desk.workspace
    changed = workspace.changed()
    calls = [desk.run("git status", shell.show_status(workspace, desk.branch))]
    if changed:
        calls.append(desk.run("git diff --stat", shell.show_stat(workspace, changed)))
    yield desk.act(calls, "the state of the tree")
    if not changed:
        return
    shown = changed if draw.chance(0.5) else draw.some(changed, 2)
    yield desk.act(
        [desk.run(f"git diff -- {' '.join(shown)}", shell.show_diff(draw, workspace, shown))], "the diff"
    )
    if commit:
        subject, made = desk.lexicon.commit(), draw.hex(8)
        desk.memory.note("id", made)
        output = f"[{desk.branch} {made}] {subject}\n {len(changed)} files changed"
        workspace.commit()
        yield desk.act([desk.run(f'git add -A && git commit -m "{subject}"', output)], "the commit")
