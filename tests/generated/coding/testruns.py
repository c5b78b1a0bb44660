"""What test runners print: pytest, Jest and go test, passing or failing."""

from collections.abc import Sequence

from msgspec import Struct

from tests.generated.coding.project import Module
from tests.generated.coding.workspace import Workspace
from tests.generated.draw import Draw
from tests.generated.lexicon import Lexicon


class Failure(Struct, frozen=True, kw_only=True):
    """A test case that fails, and the source line it comes from."""

    module: Module
    case: str
    test_line: int
    source_line: int
    function: str
    error: str
    message: str

    @property
    def summary(self) -> str:
        """The error as one line."""
        return f"{self.error}: {self.message}"


def break_test(draw: Draw, lexicon: Lexicon, workspace: Workspace, module: Module) -> Failure:
    """Return a failure of one of the module's tests."""
    dialect = module.dialect
    case = draw.one(module.cases)
    words = draw.one(module.outline.functions)
    function = dialect.function_name(words)
    start = _line_with(workspace.lines(module.path), f" {function}(")
    error = "AssertionError" if draw.chance(0.4) else dialect.kind(module.outline.error)
    compared = f"expected {draw.between(2, 900)} but got {draw.between(2, 9_000)} for {lexicon.noun()}"
    message = (
        compared
        if error == "AssertionError"
        else f"{lexicon.message()} ({lexicon.noun()}={draw.between(10, 99_999)})"
    )
    return Failure(
        module=module,
        case=case,
        test_line=_line_with(workspace.lines(module.test_path), case) + 2,
        source_line=min(start + draw.between(2, 6), len(workspace.lines(module.path))),
        function=function,
        error=error,
        message=message,
    )


def run_tests(
    draw: Draw, workspace: Workspace, modules: Sequence[Module], failures: Sequence[Failure], *, verbose: bool
) -> str:
    """Return the output of a run over `modules`, all of one language, in which `failures` happen."""
    match modules[0].dialect.language:
        case "python":
            return _pytest(draw, workspace, modules, failures, verbose=verbose)
        case "typescript":
            return _jest(draw, workspace, modules, failures, verbose=verbose)
        case _:
            return _go_test(draw, modules, failures, verbose=verbose)


def _pytest(
    draw: Draw, workspace: Workspace, modules: Sequence[Module], failures: Sequence[Failure], *, verbose: bool
) -> str:
    failed = {(failure.module.path, failure.case) for failure in failures}
    total = sum(len(module.cases) for module in modules)
    lines = [_rule(" test session starts "), "platform linux -- Python 3.13.2, pytest-9.0.1, pluggy-1.6.0"]
    lines += [
        f"rootdir: {workspace.project.root}",
        "configfile: pyproject.toml",
        f"collected {total} items",
        "",
    ]
    done = 0
    for module in modules:
        done += len(module.cases)
        share = f"[{100 * done // total:3}%]"
        marks = ["F" if (module.path, case) in failed else "." for case in module.cases]
        if verbose:
            verdicts = ["FAILED" if mark == "F" else "PASSED" for mark in marks]
            lines += [
                f"{module.test_path}::{c} {v} {share}" for c, v in zip(module.cases, verdicts, strict=True)
            ]
        else:
            lines.append(f"{module.test_path} {''.join(marks)}".ljust(74) + share)
    if failures:
        lines += ["", _rule(" FAILURES ")]
        for failure in failures:
            lines += _python_traceback(workspace, failure)
        lines.append(_rule(" short test summary info "))
        lines += [f"FAILED {f.module.test_path}::{f.case} - {f.summary}" for f in failures]
    counted = f"{len(failures)} failed, {total - len(failures)} passed" if failures else f"{total} passed"
    return "\n".join([*lines, _rule(f" {counted} in {draw.within(0.4, 38):.2f}s ")])


def _python_traceback(workspace: Workspace, failure: Failure) -> list[str]:
    tests, source = workspace.lines(failure.module.test_path), workspace.lines(failure.module.path)
    lines = [_rule(f" {failure.case} ", "_"), ""]
    lines += ["    " + line.strip() for line in tests[failure.test_line - 2 : failure.test_line]]
    shown = tests[min(failure.test_line, len(tests)) - 1].strip()
    lines += [f">       {shown}", "", f"{failure.module.test_path}:{failure.test_line}: ", "_ " * 40, ""]
    first = max(0, failure.source_line - 5)
    lines += source[first : failure.source_line - 1]
    lines += [f">   {source[failure.source_line - 1].strip()}", f"E   {failure.summary}", ""]
    return [*lines, f"{failure.module.path}:{failure.source_line}: {failure.error}"]


def _jest(
    draw: Draw, workspace: Workspace, modules: Sequence[Module], failures: Sequence[Failure], *, verbose: bool
) -> str:
    failed = {failure.module.path: failure for failure in failures}
    lines: list[str] = []
    for module in modules:
        failure = failed.get(module.path)
        lines.append(f"{'FAIL' if failure else 'PASS'} {module.test_path} ({draw.within(0.2, 9):.3f} s)")
        if verbose or failure:
            lines.append(f"  {module.dialect.kind(module.outline.entity)}")
            for case in module.cases:
                mark = "✕" if failure and failure.case == case else "✓"
                lines.append(f"    {mark} {case} ({draw.between(1, 90)} ms)")
        if failure:
            lines += _code_frame(workspace, failure)
    suites, total = len(modules), sum(len(module.cases) for module in modules)
    lines.append("")
    lines.append(f"Test Suites: {len(failed)} failed, {suites - len(failed)} passed, {suites} total")
    lines.append(f"Tests:       {len(failures)} failed, {total - len(failures)} passed, {total} total")
    return "\n".join([*lines, "Snapshots:   0 total", f"Time:        {draw.within(1, 30):.3f} s"])


def _code_frame(workspace: Workspace, failure: Failure) -> list[str]:
    module = failure.module
    lines = [
        "",
        f"  ● {module.dialect.kind(module.outline.entity)} › {failure.case}",
        "",
        f"    {failure.summary}",
        "",
    ]
    source = workspace.lines(module.path)
    for number in range(max(1, failure.source_line - 3), min(len(source), failure.source_line + 3) + 1):
        lead = ">" if number == failure.source_line else " "
        lines.append(f"    {lead} {number:4} | {source[number - 1]}")
    lines += ["", f"      at {failure.function} ({module.path}:{failure.source_line}:11)"]
    return [*lines, f"      at Object.<anonymous> ({module.test_path}:{failure.test_line}:22)", ""]


def _go_test(draw: Draw, modules: Sequence[Module], failures: Sequence[Failure], *, verbose: bool) -> str:
    failed = {(failure.module.path, failure.case): failure for failure in failures}
    packages: dict[str, list[Module]] = {}
    for module in modules:
        packages.setdefault(module.path.rpartition("/")[0], []).append(module)
    lines: list[str] = []
    for package, inside in packages.items():
        lines_before = len(lines)
        for module, case in [(each, case) for each in inside for case in each.cases]:
            failure = failed.get((module.path, case))
            if failure:
                file = module.test_path.rpartition("/")[2]
                lines += [
                    f"--- FAIL: {case} ({draw.within(0, 2):.2f}s)",
                    f"    {file}:{failure.test_line}: {failure.summary}",
                ]
                lines.append(
                    f"        {module.path}:{failure.source_line} in {failure.function}(0xc000{draw.hex(6)})"
                )
            elif verbose:
                lines += [f"=== RUN   {case}", f"--- PASS: {case} ({draw.within(0, 2):.2f}s)"]
        wrong = any(line.startswith("--- FAIL") for line in lines[lines_before:])
        lines += ["FAIL"] if wrong else []
        lines.append(f"{'FAIL' if wrong else 'ok  '}\texample.com/{package}\t{draw.within(0.01, 6):.3f}s")
    return "\n".join(lines + (["FAIL"] if failures else []))


def _rule(text: str, fill: str = "=") -> str:
    return text.center(80, fill)


def _line_with(lines: Sequence[str], text: str) -> int:
    """Return the number, from 1, of the first line that holds `text`; the first line if none does."""
    return next((number for number, line in enumerate(lines, start=1) if text in line), 1)
