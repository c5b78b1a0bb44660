"""The promise of `lowwater`: these names, options by keyword, and nothing that happens on import."""

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import lowwater
import lowwater.plugins

PROMISED = {
    "About",
    "AsyncModelSummarizer",
    "AsyncSummarizer",
    "BadInput",
    "CacheMarks",
    "Change",
    "Checkpoint",
    "Clock",
    "Compact",
    "Compaction",
    "Compressed",
    "CompressionSettings",
    "Difference",
    "FallbackProvider",
    "Idle",
    "IllegalView",
    "Keep",
    "LeafSettings",
    "Lowwater",
    "LowwaterError",
    "MemoryHook",
    "ModelSettings",
    "ModelSummarizer",
    "Models",
    "Numbers",
    "OutputSettings",
    "PartChange",
    "Phase",
    "Pin",
    "PreambleDifference",
    "PreparedRequest",
    "PrivacySettings",
    "Reason",
    "RecallTools",
    "RecallUse",
    "Recalled",
    "RecalledMessage",
    "Rejected",
    "Seams",
    "Session",
    "Settings",
    "SimplePayback",
    "Sink",
    "Size",
    "Skip",
    "Status",
    "Store",
    "StoreFailed",
    "Summarizer",
    "SummaryFailed",
    "SummaryRequest",
    "Tokenizer",
    "ToolResultSettings",
    "Totals",
    "TurnRecord",
    "Usage",
    "UsageWarning",
    "WarningLevels",
    "Written",
    "acompress",
    "compress",
    "open_store",
    "simple_payback",
}

SESSION = {
    "append",
    "checkpoint",
    "checkpoints",
    "compress",
    "diff",
    "explain",
    "history",
    "idle",
    "learn_context_length",
    "name",
    "pin",
    "pins",
    "prefetch_summary",
    "prepare",
    "recall",
    "recall_tools",
    "record",
    "refresh",
    "rewind",
    "status",
    "unpin",
    "use",
    "view",
}
"""What a session can do; async twins are not counted. Whoever adds a name says what it makes unnecessary."""

NEVER_WAIT = {"name", "recall_tools", "status"}

USER_PROGRAM = """
import asyncio

from lowwater import Compaction, Lowwater, PreparedRequest, RecallTools, Reason, Recalled, Session, Settings, Status


def loop(session: Session, questions: list[str]) -> list[dict[str, object]]:
    for question in questions:
        session.append({"role": "user", "content": question})
        request: PreparedRequest = session.prepare(system="Be brief.", max_tokens=1_000)
        session.record({"role": "assistant", "content": str(request.tokens)})
    session.checkpoint("here")
    event: Compaction | None = session.compress(focus="tests")
    status: Status = session.status()
    why: Reason | None = status.decision.because if status.decision else None
    print(event.reclaimed if event else 0, why.code if why else "", session.explain(dry_run=True))
    session.rewind("here", discard_later=True)
    return session.view()


async def look_up(session: Session, words: str) -> list[str]:
    found: list[Recalled] = await session.arecall(words, limit=3)
    tools: RecallTools = session.recall_tools()
    await session.arewind(1)
    answer: str = await tools.ahandle("lowwater_search", {"query": words})
    return [each.handle for each in found] + [answer]


async def main() -> None:
    settings = Settings(max_view_tokens=60_000)
    async with Lowwater(model="claude-opus-5-5", settings=settings, store="memory:") as lowwater:
        session = await lowwater.asession("talk")
        loop(session, ["one", "two"])
        print(await look_up(session, "one"))


asyncio.run(main())
"""

WATCHED = """
import sys, threading, time

happened = []
def hook(event, args):
    if event == "open" and not str(args[0]).endswith((".py", ".pyc", ".so", ".pth")) and args[1] != "rb":
        happened.append((event, str(args[0])))
    if event.split(".")[0] in ("socket", "subprocess", "os") and event not in ("os.listdir", "os.scandir"):
        happened.append((event, str(args)[:80]))

sys.addaudithook(hook)
import lowwater
for name in lowwater.__all__:
    getattr(lowwater, name)
assert not happened, happened
assert threading.active_count() == 1, threading.enumerate()
loaded = {"asyncio.events", "anthropic", "openai", "starlette", "hypothesis", "typer", "rich", "yaml", "httpx"}
print(sorted(loaded & set(sys.modules)))
"""

TIMED = """
import time
start = time.process_time(); import msgspec.json; base = time.process_time() - start
start = time.process_time(); import {what}; print(base, time.process_time() - start)
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_promise_is_kept_and_nothing_else_is_promised() -> None:
    assert set(lowwater.__all__) == PROMISED
    assert sorted(lowwater.__all__, key=lambda name: (name.islower(), name)) == lowwater.__all__
    assert set(dir(lowwater)) == PROMISED
    for name in PROMISED:
        assert getattr(lowwater, name).__name__ == name


def test_a_name_that_was_never_promised_is_missing_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Lowwatr'"):
        lowwater.Lowwatr  # noqa: B018


def test_every_promised_name_says_what_it_is_for() -> None:
    for name in PROMISED:
        documented = inspect.getdoc(getattr(lowwater, name))
        assert documented, name
        assert documented.splitlines()[0].endswith((".", "does")), name


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in ("compress", "acompress", "Lowwater"):
        yield name, getattr(lowwater, name)
    for kind in (lowwater.Lowwater, lowwater.Session, lowwater.PreparedRequest, lowwater.Compressed):
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}", member


@pytest.mark.parametrize(("name", "call"), [pytest.param(n, c, id=n) for n, c in public_callables()])
def test_options_are_keyword_only_and_everything_is_documented_and_typed(
    name: str, call: Callable[..., Any]
) -> None:
    signature = inspect.signature(call)
    positional = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "self"
    ]
    assert len(positional) <= 1, f"{name} takes more than its subject by position"
    if not inspect.isclass(call):
        assert inspect.getdoc(call), name
        assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not p.empty for p in signature.parameters.values() if p.name != "self")


def members(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def is_awaited(kind: type, name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(kind, name))


def test_a_session_can_do_no_more_than_one_can_hold_in_the_head() -> None:
    assert {name for name in members(lowwater.Session) if not is_awaited(lowwater.Session, name)} == SESSION


@pytest.mark.parametrize("name", sorted(SESSION - NEVER_WAIT))
def test_a_method_that_may_wait_has_a_twin_that_takes_and_returns_the_same(name: str) -> None:
    assert is_awaited(lowwater.Session, f"a{name}")
    one, other = (getattr(lowwater.Session, each) for each in (name, f"a{name}"))
    assert inspect.signature(one) == inspect.signature(other)


def test_the_one_shot_and_its_twin_take_the_same() -> None:
    assert inspect.signature(lowwater.compress) == inspect.signature(lowwater.acompress)


NOT_CALLED_BY_USERS = {"Session", "RecallTools"}
"""Classes whose objects users are given."""


def annotations_of(thing: Any) -> dict[str, Any]:
    """Return the annotations of a function or class, with the names that its module imports for type checkers only."""
    module = sys.modules[thing.__module__]
    names = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            source = importlib.import_module(node.module)
            names |= {each.asname or each.name: getattr(source, each.name, None) for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {
                each.name.split(".")[0]: importlib.import_module(each.name.split(".")[0])
                for each in node.names
            }
    return get_type_hints(inspect.unwrap(thing), names)


def classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes that an annotation is made of."""
    if isinstance(annotation, type):
        yield get_origin(annotation) or annotation
    if get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            for each in part if isinstance(part, list) else [part]:
                yield from classes_in(each)


def public_parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield what has annotations in a public function or class: its methods, properties and, of a value, its fields."""
    if inspect.isfunction(thing):
        yield thing.__name__, thing
    elif inspect.isclass(thing):
        for name, member in vars(thing).items():
            is_called = name == "__init__" and thing.__name__ not in NOT_CALLED_BY_USERS
            part = member.fget if isinstance(member, property) else member
            if inspect.isfunction(part) and (is_called or not name.startswith("_")):
                yield f"{thing.__name__}.{name}", part
        if hasattr(thing, "__struct_fields__"):
            yield thing.__name__, thing


def test_every_type_that_something_public_takes_or_returns_can_be_imported_and_says_what_it_is() -> None:
    promised = {
        name: getattr(module, name) for module in (lowwater.plugins, lowwater) for name in module.__all__
    }
    exported = {id(thing) for thing in promised.values()}
    hidden, silent = set(), set()
    for thing in promised.values():
        for name, part in public_parts(thing):
            if not inspect.getdoc(part) and not name.endswith("__init__"):
                silent.add(name)
            for annotation in annotations_of(part).values():
                hidden |= {
                    f"{kind.__qualname__} in {name}"
                    for kind in classes_in(annotation)
                    if kind.__module__.startswith("lowwater") and id(kind) not in exported
                }
    assert not hidden
    assert not silent


@pytest.mark.full
def test_a_program_that_uses_public_names_only_passes_a_strict_type_checker_and_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(USER_PROGRAM, encoding="utf-8")
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            f"--cache-dir={tmp_path}/cache",
            str(program),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    assert "lw:" in run(USER_PROGRAM)


def test_nothing_happens_on_import() -> None:
    """No file is opened but code, no thread is started, and nothing heavy that the library does not need is loaded."""
    assert run(WATCHED) in ("[]", "['asyncio.events']")


@pytest.mark.parametrize(
    ("what", "times"),
    [("lowwater", 1.0), ("lowwater.session.library", 20.0)],
    ids=["the package", "all of it"],
)
def test_importing_costs_little_compared_to_msgspec(what: str, times: float) -> None:
    """Measured against importing msgspec in the same process, the best of three."""
    measured = [tuple(map(float, run(TIMED.format(what=what)).split())) for _ in range(3)]
    base, own = min(one for one, _ in measured), min(other for _, other in measured)
    assert own < times * base, f"{own * 1_000:.0f} ms, msgspec {base * 1_000:.0f} ms"
