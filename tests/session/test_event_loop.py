"""The async twins leave the event loop free, with a real file and a session of thousands of messages."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lowwater import Lowwater, acompress

MODEL = "claude-opus-5-5"
LONGEST = 0.020
"""Seconds that a call may hold the event loop."""
ATTEMPTS = 4
Call = Callable[[], Awaitable[object]]


def talk(steps: int) -> list[dict[str, Any]]:
    """Return the messages of an agent that has read so many files: four for each."""
    messages: list[dict[str, Any]] = []
    for step in range(steps):
        call = {
            "type": "tool_use",
            "id": f"c{step}",
            "name": "Read",
            "input": {"file_path": f"/src/m{step}.py"},
        }
        page = f"def f{step}():\n    return {step}\n" * 8
        messages += [
            {"role": "user", "content": f"Look at file {step}."},
            {"role": "assistant", "content": [{"type": "text", "text": f"Reading {step}."}, call]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"c{step}", "content": page}],
            },
            {"role": "assistant", "content": [{"type": "text", "text": f"File {step} is fine."}]},
        ]
    return [*messages, {"role": "user", "content": "And the last one?"}]


TALK = talk(750)
ANSWER = {
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "It is fine, too."}],
    "usage": {"input_tokens": 90_000, "output_tokens": 9},
}


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Python's own collector stops every thread, for as long as the whole process has objects: that is nobody's call."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def longest_hold(call: Call) -> float:
    """Return the longest time for which the loop did nothing else while a call was awaited."""
    holds: list[float] = []

    async def beat() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            holds.append(now - last)
            last = now

    heart = asyncio.create_task(beat())
    await asyncio.sleep(0.005)
    holds.clear()
    await call()
    await asyncio.sleep(0.005)
    heart.cancel()
    return max(holds)


def spin(seconds: float) -> None:
    """Compute something in Python for so long, as a control: on a busy machine this alone delays the loop."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(100))


async def check_free(name: str, call: Call) -> None:
    """Fail if each of several attempts holds the loop, and longer than any computation on another thread would."""
    seen: list[str] = []
    for _ in range(ATTEMPTS):
        start = time.perf_counter()
        hold = await longest_hold(call)
        taken = time.perf_counter() - start
        if hold < LONGEST:
            return
        control = await longest_hold(lambda: asyncio.to_thread(spin, min(taken, 1.0)))  # noqa: B023 - awaited here
        if hold < 1.5 * control:
            return
        seen.append(f"{1000 * hold:.0f} ms of {1000 * taken:.0f} (control: {1000 * control:.0f} ms)")
    pytest.fail(f"{name}: the event loop was held for {', '.join(seen)}")


async def use_every_twin(store: str) -> None:
    async with Lowwater(model=MODEL, store=store) as lowwater:
        session = await lowwater.asession("long")
        names = iter(range(100))

        async def begin() -> None:
            await (await lowwater.asession(f"new-{next(names)}")).aprepare(TALK)

        async def answer() -> None:
            await session.aprepare()
            await session.arecord(ANSWER)

        async def go_back() -> None:
            name = f"here-{next(names)}"
            await session.acheckpoint(name)
            await session.acompress()
            await session.adiff(name)
            await session.arewind(name)

        await session.aprepare(TALK)
        tools = session.recall_tools()
        calls: dict[str, Call] = {
            "prepare": begin,
            "record": answer,
            "compress, rewind": go_back,
            "append": lambda: session.aappend({"role": "user", "content": "Go on."}),
            "view": session.aview,
            "history": session.ahistory,
            "checkpoints": session.acheckpoints,
            "recall": lambda: session.arecall("return 17"),
            "recall_tools": lambda: tools.ahandle("lowwater_search", {"query": "return 17"}),
            "explain": lambda: session.aexplain(dry_run=True),
            "use": lambda: session.ause(MODEL),
            "learn_context_length": lambda: session.alearn_context_length(150_000),
            "refresh": session.arefresh,
            "prefetch_summary": session.aprefetch_summary,
            "one shot": lambda: acompress(TALK, model=MODEL, force=True),
        }
        for name, call in calls.items():
            await check_free(name, call)
    async with Lowwater(model=MODEL, store=store) as lowwater:
        await check_free("session", lambda: lowwater.asession("long"))


def test_no_twin_holds_the_event_loop(tmp_path: Path) -> None:
    asyncio.run(use_every_twin(f"sqlite:///{tmp_path}/sessions.db"))
