"""How long the dashboard takes to show a long session and a long list, in a real browser.

    .venv/bin/python -m bench.dashboard                              # 20,000 calls, 10,000 sessions; the first time some ten minutes
    .venv/bin/python -m bench.dashboard --calls 2000 --sessions 500  # fewer

The session is played by the real engine, and so are those that the list repeats under other names; both stay in `bench/.dashboard`.
Each page is opened in a new window of a browser without a cache, beside `lowwater dashboard` in a process of its own. The first paint
is when there are figures and charts on the screen, drawn is when the prompts are divided by kind; a frame over 50 ms is one that can be felt.
The command ends with status 1 if a first paint takes a second or more, or scrolling stands still for a quarter of one.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace
from playwright import sync_api as playwright

from bench.growth import MODEL, QUIET, tool_call, tool_result
from bench.long_sessions import Listening
from lowwater import Lowwater
from lowwater.core.stored import About, Append
from lowwater.protocols import Store
from lowwater.session.factories import resolve_store
from lowwater.stores.memory import MemoryStore

CALLS, SESSIONS, ROUNDS = 20_000, 10_000, 3
FOLDER = Path(__file__).parent / ".dashboard"
LONG = "twenty-thousand-calls"
TOKEN = "lw-a-token-for-the-bench"
_LENGTHS = (2, 2, 3, 4, 5, 6, 8, 40)
"""Calls of the sessions in the list."""
_MOST_PAINT, _MOST_FRAME = 1.0, 0.25
_WHEEL, _TURNS = 400, 40
_FELT = 50.0
"""Milliseconds of a frame that can be felt."""
_FRAMES = """() => {
  window.frames_ = [];
  let last = performance.now();
  const next = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""
_REQUESTS = """() => performance.getEntriesByType("resource").filter((each) => each.name.includes("/api/")).map((each) => ({
  name: each.name.split("/api/")[1].split("?")[0], took: each.responseEnd - each.requestStart, bytes: each.encodedBodySize }))"""


class Screen(Struct, frozen=True, kw_only=True):
    """A page of the dashboard: how it is opened, and what there is when it is painted and when it is drawn."""

    name: str
    path: Path
    session: str = ""
    painted: str
    drawn: str


class Seen(Struct, frozen=True, kw_only=True):
    """What one opening of a page took, in seconds from the moment that its address was entered."""

    painted: float
    drawn: float
    requests: list[dict[str, Any]]
    server: float
    """The processor time of the server until everything was drawn; waiting for other programs is not in it."""
    page: float
    """The processor time of the page's own thread until then."""
    frames: list[float]
    """The milliseconds between one frame and the next while the page was scrolled."""


def main(arguments: list[str]) -> int:
    """Measure; return 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="bench.dashboard")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    screens = [
        Screen(
            name=f"a session of {given.calls:,} calls",
            path=one_session(given.calls),
            session=LONG,
            painted="#tiles .figure",
            drawn="#fill tr.u-series:nth-child(4)",
        ),
        Screen(
            name=f"a list of {given.sessions:,} sessions",
            path=many_sessions(given.sessions),
            painted="#rows td",
            drawn="#rows td",
        ),
    ]
    missed = [each for screen in screens for each in _tell(screen)]
    for each in missed:
        print("missed:", each)
    return int(bool(missed))


# The stores


def one_session(calls: int) -> Path:
    """Return a store with one session of so many calls, played by the real engine."""
    path = FOLDER / f"calls-{calls}.db"
    if not path.exists():
        with _built(path) as store:
            _play(store, LONG, calls)
    return path


def many_sessions(count: int) -> Path:
    """Return a store with so many sessions: a few that were played, again and again under other names."""
    path = FOLDER / f"sessions-{count}.db"
    if not path.exists():
        played = [_appends(calls) for calls in _LENGTHS]
        with _built(path) as store:
            for number in range(count):
                version, about = 0, About(title=f"Session {number}: make the tests pass")
                for each in played[number % len(played)]:
                    named = replace(each, about=about) if not version else each
                    version = store.append(f"session-{number:05}", version, named)
    return path


@contextmanager
def _built(path: Path) -> Iterator[Store]:
    """Yield a store that becomes the file at `path` once it is complete."""
    unfinished = path.with_suffix(".unfinished")
    for each in FOLDER.glob(f"{unfinished.name}*"):
        each.unlink()
    store = resolve_store(f"sqlite:///{unfinished}?sync=normal")
    yield store
    store.close()
    unfinished.rename(path)


def _appends(calls: int) -> list[Append]:
    listening = Listening(MemoryStore())
    _play(cast("Store", listening), "played", calls)
    return [each for each in listening.given if each != Append()]


def _play(store: Store, name: str, calls: int) -> None:
    session = Lowwater(model=MODEL, store=store, summarizer=(), settings=QUIET).session(name)
    chance = random.Random(calls)
    session.append([{"role": "user", "content": "Make the tests pass."}])
    for call in range(calls):
        session.prepare()
        expected = session.status().expected_usage
        usage = {
            "input_tokens": expected.uncached,
            "cache_read_input_tokens": expected.cache_read,
            "cache_creation_input_tokens": expected.cache_write + expected.cache_write_long,
            "output_tokens": 60,
        }
        session.record(tool_call(call, chance) | {"usage": usage})
        session.append(tool_result(call, chance))


# In the browser


def _tell(screen: Screen) -> list[str]:
    """Print what a page took; return what missed its bound."""
    seen = [_look(screen) for _ in range(ROUNDS)]
    usual = sorted(seen, key=lambda each: each.painted)[len(seen) // 2]
    painted, drawn = median(each.painted for each in seen), median(each.drawn for each in seen)
    # The window's first frame comes before anything has moved.
    frames = [frame for each in seen for frame in each.frames[1:]]
    print(f"{screen.name}, {screen.path.stat().st_size / 1e6:,.0f} MB, median of {ROUNDS}:")
    server, page = median(each.server for each in seen), median(each.page for each in seen)
    print(
        f"  first paint {painted:.2f} s, drawn {drawn:.2f} s; processor time: server {server:.2f} s, page {page:.2f} s"
    )
    for each in usual.requests:
        print(f"    {each['name']:<10} {each['took'] / 1e3:>6.2f} s {each['bytes'] / 1e3:>8,.0f} KB")
    felt = sum(frame > _FELT for frame in frames) / len(frames)
    print(
        f"  scrolling: {len(frames)} frames, median {median(frames):.0f} ms, longest {max(frames):.0f} ms, {felt:.1%} over {_FELT:.0f} ms",
        flush=True,
    )
    late = [f"{screen.name}: first paint after {painted:.2f} s"] if painted >= _MOST_PAINT else []
    rough = [f"{screen.name}: a frame of {max(frames):.0f} ms"] if max(frames) >= 1e3 * _MOST_FRAME else []
    return late + rough


def _look(screen: Screen) -> Seen:
    """Open a page in a new browser, over a server that has just been started."""
    with _serving(screen.path) as served, playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        seen = _seen(page, served, screen)
        browser.close()
        return seen


def _seen(page: playwright.Page, served: "_Served", screen: Screen) -> Seen:
    developer = page.context.new_cdp_session(page)
    developer.send("Performance.enable", {"timeDomain": "threadTicks"})
    before, url = _processor_time(served.process), served.url
    painted = _since_start(page, f"{url}&s={screen.session}" if screen.session else url, screen.painted)
    drawn = _since_start(page, "", screen.drawn)
    requests = cast("list[dict[str, Any]]", page.evaluate(_REQUESTS))
    metrics = {each["name"]: each["value"] for each in developer.send("Performance.getMetrics")["metrics"]}
    server = _processor_time(served.process) - before
    page.mouse.move(640, 450)
    page.evaluate(_FRAMES)
    for turn in range(_TURNS):
        page.mouse.wheel(0, _WHEEL if turn < _TURNS // 2 else -_WHEEL)
        page.wait_for_timeout(16)
    frames = cast("list[float]", page.evaluate("window.frames_"))
    return Seen(
        painted=painted,
        drawn=drawn,
        requests=requests,
        server=server,
        page=metrics["TaskDuration"],
        frames=frames,
    )


def _processor_time(process: "subprocess.Popen[str]") -> float:
    user, system = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _since_start(page: playwright.Page, url: str, selector: str) -> float:
    """Return after how many seconds something is on the screen, asked frame by frame in the page itself."""
    if url:
        page.goto(url, wait_until="commit")
    asked = "(wanted) => document.querySelector(wanted) ? performance.now() / 1000 : 0"
    return float(page.wait_for_function(asked, arg=selector, polling="raf").json_value())


def chromium() -> str:
    """Return the path of the browser that `make .venv/browser` installs."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found:
        return found
    with playwright.sync_playwright() as started:
        return started.chromium.executable_path


class _Served(NamedTuple):
    url: str
    process: "subprocess.Popen[str]"


@contextmanager
def _serving(path: Path) -> Iterator["_Served"]:
    """Yield `lowwater dashboard` over a store, in a process of its own."""
    command = [sys.executable, "-m", "lowwater", "dashboard", "--store", f"sqlite:///{path}"]
    environment = os.environ | {"LOWWATER_DASHBOARD_TOKEN": TOKEN}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        url = next(word for line in process.stdout for word in line.split() if word.startswith("http://"))
        yield _Served(url, process)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
