"""The promise of `lowwater`: these names, options by keyword, and nothing that happens on import."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import lowwater

PROMISED = {
    "AsyncModelSummarizer",
    "AsyncSummarizer",
    "BadInput",
    "Checkpoint",
    "Compaction",
    "Compressed",
    "Difference",
    "Expansion",
    "IllegalView",
    "Lowwater",
    "LowwaterError",
    "MemoryHook",
    "ModelSummarizer",
    "PreparedRequest",
    "RecallTools",
    "Recalled",
    "Session",
    "Settings",
    "SimplePayback",
    "Sink",
    "Status",
    "Store",
    "StoreFailed",
    "Summarizer",
    "SummaryFailed",
    "SummaryRequest",
    "TurnRecord",
    "UsageWarning",
    "Written",
    "acompress",
    "compress",
    "open_store",
    "simple_payback",
}

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


def test_what_a_session_can_do_blocking_and_awaited_takes_the_same_arguments() -> None:
    for name in ("prepare", "compress"):
        one = inspect.signature(getattr(lowwater.Session, name)).parameters
        other = inspect.signature(getattr(lowwater.Session, f"a{name}")).parameters
        assert list(one) == list(other)
    assert set(inspect.signature(lowwater.compress).parameters) == set(
        inspect.signature(lowwater.acompress).parameters
    )


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
