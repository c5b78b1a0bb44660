"""Do the tests notice when the code that decides and prices is wrong? `python -m tools.mutation --out build/killed.json`.

Collects the tests once, runs them once to see which test reaches which statement, then changes one operator or constant at a
time, each in a forked process, and runs the tests that reach it, the ones that reach least first, until one fails. Golden
sessions stay out: they notice nearly everything and would hide that nothing else does. With `--before` it lists the mutants
that an earlier run killed and this one did not.
"""

import argparse
import ast
import builtins
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
TESTS = ("tests/core", "tests/spec", "tests/session")
SECONDS_PER_MUTANT = 12.0

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


def deciding_files() -> list[Path]:
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
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            other_sum = copy.deepcopy(node)
            other_sum.op = ARITHMETIC[type(op)]
            yield other_sum
        case ast.BoolOp(op=op, values=values):
            yield ast.copy_location(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values), node)
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
            if field in ("annotation", "returns", "args", "decorator_list") and not isinstance(node, ast.Call):
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
    found = []
    for path in deciding_files():
        tree = ast.parse(path.read_text())
        for number, (parent, field, at, other, statement) in enumerate(places(tree)):
            value = getattr(parent, field)
            old = value if at is None else value[at]
            shown = (old.test, other.test) if isinstance(old, ast.If) and isinstance(other, ast.If) else (old, other)
            before, after = (ast.unparse(ast.fix_missing_locations(node)) for node in shown)
            found.append(Mutant(str(path.relative_to(ROOT)), number, old.lineno, statement, before, after))
    return found


def mutated(mutant: Mutant) -> ast.Module:
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
        for inner in ast.walk(node):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(inner, field, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(inner, field, [each for child in block for each in (self.probe(child), child)])
        return node

    def probe(self, at: ast.stmt) -> ast.stmt:
        call = ast.Call(
            ast.Name("lowwater_reached", ast.Load()), [ast.Constant((self.file, at.lineno))], []
        )
        return ast.copy_location(ast.Expr(call), at)


class Mutation:
    """The pytest plugin: instead of running the tests once it runs them as described above."""

    def __init__(self, *, sample: int, seed: int, out: Path) -> None:
        self.sample, self.seed, self.out = sample, seed, out
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def run(self, session: pytest.Session, items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, float]]:
        for item, following in zip(items, [*items[1:], None], strict=True):
            began = time.process_time()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item, time.process_time() - began

    def reach(self, session: pytest.Session, items: list[pytest.Item], to: Path) -> None:
        """Which statements each test reaches; what a shared fixture reaches counts for all tests of its file."""
        reached: set[tuple[str, int]] = set()
        setattr(builtins, "lowwater_reached", reached.add)  # noqa: B010
        for path in deciding_files():
            tree = Probes(str(path.relative_to(ROOT))).visit(ast.parse(path.read_text()))
            install(path, ast.fix_missing_locations(tree))
        tests: dict[str, Any] = {}
        for item, seconds in self.run(session, items):
            if self.failed:
                raise RuntimeError(f"{item.nodeid} fails without any mutant")
            tests[item.nodeid] = {"seconds": seconds, "reached": sorted(reached)}
            reached.clear()
        to.write_text(json.dumps(tests))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        map_file = self.out.with_suffix(".map.json")
        if forked(lambda: self.reach(session, session.items, map_file), limit=7200, quiet=False) != 0:
            sys.exit("the run without mutants failed")
        tests = json.loads(map_file.read_text())
        reaching: dict[tuple[str, int], list[pytest.Item]] = {}
        for item in sorted(session.items, key=lambda item: len(tests[item.nodeid]["reached"])):
            for file, line in tests[item.nodeid]["reached"]:
                reaching.setdefault((file, line), []).append(item)
        everything = mutants()
        chosen = random.Random(self.seed).sample(everything, min(self.sample, len(everything)))  # noqa: S311
        results = []
        began = time.monotonic()
        for done, mutant in enumerate(sorted(chosen, key=lambda one: (one.file, one.number)), 1):
            items, seconds = [], 0.0
            for item in reaching.get((mutant.file, mutant.statement), []):
                if seconds + tests[item.nodeid]["seconds"] <= SECONDS_PER_MUTANT:
                    items.append(item)
                    seconds += tests[item.nodeid]["seconds"]
            code = forked(partial(self.attempt, session, mutant, items), limit=60) if items else 0
            results.append({**vars(mutant), "tests": len(items), "killed": code != 0})
            killed = sum(bool(result["killed"]) for result in results)
            print(f"{done}/{len(chosen)} tried, {killed} killed, {time.monotonic() - began:.0f} s", file=sys.stderr)
            self.out.write_text(json.dumps({"mutants": results, "killed": killed, "of": len(results)}, indent=1))
        return True

    def attempt(self, session: pytest.Session, mutant: Mutant, items: list[pytest.Item]) -> None:
        install(ROOT / mutant.file, mutated(mutant))
        for _ in self.run(session, items):
            if self.failed:
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
        except BaseException:
            traceback.print_exc()
            os._exit(2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return status


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=250, help="how many mutants (all: 100000)")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--out", type=Path, default=ROOT / "build/mutation.json")
    parser.add_argument("--before", type=Path, help="an earlier result to compare with")
    parser.add_argument("tests", nargs="*", default=TESTS)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    os.environ["TESTS_EXAMPLES"] = "mutation"
    plugin = Mutation(sample=options.sample, seed=options.seed, out=options.out.resolve())
    pytest.main(["-n0", "-m", "not full", "--no-header", *options.tests], plugins=[plugin])
    now = json.loads(options.out.read_text())
    print(f"{now['killed']} of {now['of']} mutants killed")
    if options.before:
        killed = {(one["file"], one["number"]) for one in now["mutants"] if one["killed"]}
        for one in json.loads(options.before.read_text())["mutants"]:
            if one["killed"] and (one["file"], one["number"]) not in killed:
                print(f"no longer killed: {one['file']}:{one['line']} {one['before']} -> {one['after']}")


if __name__ == "__main__":
    main()
