"""Do the tests notice when the code that decides and prices is wrong? `python -m tools.mutation --out build/killed.json`.

Collects the tests once, runs them once to see which test reaches which statement, then changes one operator or constant at a
time, each in a forked process, and runs the tests that reach it, the ones that reach least first, until one fails. Golden
sessions stay out: they notice nearly everything and would hide that nothing else does. With `--before` it lists the mutants
that an earlier run killed and this one did not.
"""

import argparse
import ast
import builtins
import contextlib
import copy
import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "src/lowwater/core"
DECIDING = (
    "policies/*.py decisions.py costs/*.py turns/pricing.py turns/candidates.py turns/decision_context.py "
    "cache/belief.py"
).split()
TESTS = "tests/core/policies tests/core/costs tests/core/cache tests/core/turns tests/core/test_limits.py tests/spec".split()
SECONDS_PER_MUTANT = 3.0

COMPARISONS: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
ARITHMETIC: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One changed place: `number` counts the places of one file."""

    file: str
    number: int
    line: int
    statement: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """What it is called in results."""
        return f"{Path(self.file).name}:{self.line} {self.before} -> {self.after} #{self.number}"


def deciding_files() -> list[Path]:
    """The files whose operators and constants are changed."""
    return sorted(path for pattern in DECIDING for path in CORE.glob(pattern))


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one thing changed, for each thing that can be."""
    match node:
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                if type(op) in COMPARISONS:
                    other = copy.deepcopy(node)
                    other.ops[at] = COMPARISONS[type(op)]
                    yield other
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not isinstance(
            node.left, ast.Constant | ast.JoinedStr
        ):
            other_sum = copy.deepcopy(node)
            other_sum.op = ARITHMETIC[type(op)]
            yield other_sum
        case ast.BoolOp(op=op, values=values):
            yield ast.copy_location(
                ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values), node
            )
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.copy_location(ast.Constant(not value), node)
        case ast.Constant(value=int(number)):
            yield ast.copy_location(ast.Constant(number + 1), node)
        case ast.Constant(value=float(amount)):
            yield ast.copy_location(ast.Constant(amount * 2 or 1.0), node)
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            swapped = copy.deepcopy(node)
            swapped.func = ast.copy_location(ast.Name(CALLS[name], ast.Load()), node)
            yield swapped
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test):
            negated = copy.copy(node)
            negated.test = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
            yield negated


def places(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, int]]:
    """Every node in a function's body that can be changed: its parent, the field, the position, the new node, the statement."""

    def within(node: ast.AST, statement: int) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, int]]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            return
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "args", "decorator_list") and not isinstance(
                node, ast.Call
            ):
                continue
            for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    line = child.lineno if isinstance(child, ast.stmt) else statement
                    for other in changed(child):
                        yield node, field, at, other, line
                    yield from within(child, line)

    def functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield child
            else:
                yield from functions(child)

    for function in functions(tree):
        yield from within(function, function.lineno)


def mutants() -> list[Mutant]:
    """Every place that can be changed."""
    found = []
    for path in deciding_files():
        tree = ast.parse(path.read_text())
        for number, (parent, field, at, other, statement) in enumerate(places(tree)):
            value = getattr(parent, field)
            old = value if at is None else value[at]
            shown = (
                (old.test, other.test)
                if isinstance(old, ast.If) and isinstance(other, ast.If)
                else (old, other)
            )
            before, after = (ast.unparse(ast.fix_missing_locations(node)) for node in shown)
            found.append(Mutant(str(path.relative_to(ROOT)), number, old.lineno, statement, before, after))
    return found


def mutated(mutant: Mutant) -> ast.Module:
    """The file with that place changed."""
    tree = ast.parse((ROOT / mutant.file).read_text())
    for number, (parent, field, at, other, _) in enumerate(places(tree)):
        if number == mutant.number:
            if at is None:
                setattr(parent, field, other)
            else:
                getattr(parent, field)[at] = other
            break
    return ast.fix_missing_locations(tree)


def install(path: Path, tree: ast.Module) -> None:
    """Give the functions that are already loaded the code of the changed file, wherever they were imported to."""
    codes: dict[tuple[str, int], CodeType] = {}

    def walk(code: CodeType) -> None:
        for const in code.co_consts:
            if isinstance(const, CodeType):
                codes[const.co_qualname, const.co_firstlineno] = const
                walk(const)

    walk(compile(tree, str(path), "exec"))
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code


class Probes(ast.NodeTransformer):
    """Calls `lowwater_reached(file, line)` before each statement of a function."""

    def __init__(self, file: str) -> None:
        self.file = file

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Put a probe before each of its statements."""
        for inner in ast.walk(node):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(inner, field, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(inner, field, [each for child in block for each in (self.probe(child), child)])
        return node

    def probe(self, at: ast.stmt) -> ast.stmt:
        """Return the call that tells of this statement."""
        call = ast.Call(
            ast.Name("lowwater_reached", ast.Load()), [ast.Constant(self.file), ast.Constant(at.lineno)], []
        )
        return ast.copy_location(ast.Expr(call), at)


class Mutation:
    """The pytest plugin: instead of running the tests once it runs them as described above."""

    def __init__(
        self,
        *,
        sample: int,
        seed: int,
        out: Path,
        before: dict[str, str],
        map_file: Path | None,
        killed_only: bool,
    ) -> None:
        self.sample, self.seed, self.out, self.before = sample, seed, out, before
        self.map_file, self.killed_only = map_file, killed_only
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the name of a test that fails."""
        if report.failed:
            self.failed = report.nodeid

    def run(self, session: pytest.Session, items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, float]]:
        """Run these tests one by one: each with the seconds it took."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            began = time.process_time()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item, time.process_time() - began

    def reach(self, session: pytest.Session, to: Path) -> None:
        """Write which statements each test reaches; what a shared fixture reaches counts for its first test."""
        reached: set[tuple[str, int]] = set()
        setattr(builtins, "lowwater_reached", lambda file, line: reached.add((file, line)))  # noqa: B010
        for path in deciding_files():
            tree = Probes(str(path.relative_to(ROOT))).visit(ast.parse(path.read_text()))
            install(path, ast.fix_missing_locations(tree))
        tests: dict[str, Any] = {}
        for item, seconds in self.run(session, session.items):
            # A test that fails without a mutant says nothing about one.
            tests[item.nodeid] = {"seconds": seconds, "reached": [] if self.failed else sorted(reached)}
            self.failed = ""
            reached.clear()
        to.write_text(json.dumps(tests))

    def reaching(self, session: pytest.Session) -> dict[tuple[str, int], list[pytest.Item]]:
        """The tests that reach each statement, the ones that reach least first, as many as there is time for."""
        map_file = self.map_file or self.out.with_suffix(".map.json")
        if not self.map_file and forked(partial(self.reach, session, map_file), limit=7200, quiet=False) != 0:
            sys.exit("the run without mutants failed")
        tests = json.loads(map_file.read_text())
        found: dict[tuple[str, int], list[pytest.Item]] = {}
        spent: dict[tuple[str, int], float] = {}
        known = [item for item in session.items if item.nodeid in tests]
        for item in sorted(known, key=lambda item: len(tests[item.nodeid]["reached"])):
            for file, line in tests[item.nodeid]["reached"]:
                seconds = spent.get((file, line), 0.0) + tests[item.nodeid]["seconds"]
                if seconds <= SECONDS_PER_MUTANT:
                    spent[file, line] = seconds
                    found.setdefault((file, line), []).append(item)
        return found

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants, first those that an earlier run killed, each with the test that killed it then."""
        everything = mutants()
        chosen = random.Random(self.seed).sample(everything, min(self.sample, len(everything)))  # noqa: S311
        if self.killed_only:
            chosen = [mutant for mutant in chosen if self.before.get(mutant.name)]
        by_name = {item.nodeid: item for item in session.items}
        killers = {mutant: by_name.get(self.before.get(mutant.name, "")) for mutant in chosen}
        killed_by = {mutant: self.killer(session, mutant, [item]) for mutant, item in killers.items() if item}
        left = [mutant for mutant in chosen if not killed_by.get(mutant)]
        reaching = self.reaching(session) if left else {}
        for done, mutant in enumerate(left, 1):
            items = reaching.get((mutant.file, mutant.statement), [])
            killed_by[mutant] = self.killer(session, mutant, items)
            tell(f"{done} of {len(left)} tried, {sum(map(bool, killed_by.values()))} killed")
        results = [{**vars(mutant), "name": mutant.name, "by": killed_by[mutant]} for mutant in chosen]
        results.sort(key=lambda result: (result["file"], result["number"]))
        killed = sum(map(bool, killed_by.values()))
        self.out.write_text(json.dumps({"killed": killed, "of": len(chosen), "mutants": results}, indent=1))
        return True

    def killer(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> str:
        """The test among these that fails with the mutant; empty if none does."""
        note = self.out.with_suffix(".killer")
        note.write_text("a test that did not come to an end")
        died = items and forked(partial(self.attempt, session, mutant, items, note), limit=90)
        return note.read_text() if died else ""

    def attempt(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item], note: Path) -> None:
        """Run the tests with the mutant up to the first that fails."""
        install(ROOT / mutant.file, mutated(mutant))
        for _ in self.run(session, items):
            if self.failed:
                note.write_text(self.failed)
                os._exit(1)


def forked(work: Callable[[], None], *, limit: int, quiet: bool = True) -> int:
    """What a process of its own ends with: 0 where the work was done; a signal where it ran past its limit (seconds)."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.alarm(limit)
        if quiet:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
        try:
            work()
        except BaseException:  # noqa: BLE001  # whatever it is, this process must end here
            traceback.print_exc()
            os._exit(2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status


def tell(line: str) -> None:
    """Print a line beside pytest's own."""
    sys.stderr.write(f"{line}\n")


def main() -> None:
    """Try a sample of the mutants, and compare with an earlier run if there is one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=150, help="how many mutants")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--out", type=Path, default=ROOT / "build/mutation.json")
    parser.add_argument("--before", type=Path, help="an earlier result to compare with")
    parser.add_argument(
        "--killed-only", action="store_true", help="leave out what the earlier run did not kill"
    )
    parser.add_argument(
        "--map", type=Path, help="an earlier map of what tests reach; tests it does not know are left out"
    )
    parser.add_argument("tests", nargs="*", default=TESTS)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(options.before.read_text())["mutants"] if options.before else []
    os.environ["TESTS_EXAMPLES"] = "mutation"
    plugin = Mutation(
        sample=options.sample,
        seed=options.seed,
        out=options.out.resolve(),
        before={one["name"]: one["by"] for one in before},
        map_file=options.map,
        killed_only=options.killed_only,
    )
    pytest.main(["-n0", "-m", "not full", "--no-header", *options.tests], plugins=[plugin])
    now = json.loads(options.out.read_text())
    killed = {one["name"] for one in now["mutants"] if one["by"]}
    for one in before:
        if one["by"] and one["name"] not in killed:
            tell(f"no longer killed: {one['name']}, which {one['by']} killed")
    tell(f"{now['killed']} of {now['of']} mutants killed")


if __name__ == "__main__":
    main()
