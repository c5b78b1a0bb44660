"""Measures the house: files and lines, modules with one importer, what a turn walks through, what an import loads.

`python -m tools.measure_house` measures this checkout; `--source ../old` another one, with the packages of this environment.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_TIMES = 5
"""Runs of which the fastest counts."""

_WALK = """
import json, sys, tempfile
from collections import Counter
from lowwater import Lowwater

folder = tempfile.mkdtemp()
session = Lowwater(model="claude-opus-5-5", store=f"sqlite:///{folder}/s.db").session("walk")
answer = {"type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use"}
messages = [{"role": "user", "content": "Find out why the build fails."}]

def usage():
    size = len(json.dumps(messages)) // 4
    return {"input_tokens": size, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 40}

def turn(number, size):
    session.prepare(messages)
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": {"command": f"make part_{number}"}}
    said = [{"type": "text", "text": "I look."}, call]
    session.record({**answer, "content": said, "usage": usage()})
    messages.append({"role": "assistant", "content": said})
    line = f"part_{number}.c: warning: value {number} is never used\\n"
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": line * size}
    messages.append({"role": "user", "content": [result]})

def walked(act):
    calls = Counter()
    def profile(frame, event, _):
        if event == "call" and "/lowwater/" in frame.f_code.co_filename:
            module = frame.f_code.co_filename.rpartition("/lowwater/")[2]
            calls[f"{module} {frame.f_code.co_qualname}"] += 1
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls

session.prepare(messages)
said = [{"type": "text", "text": "Which build do you mean?"}]
session.record({**answer, "content": said, "usage": usage()})
messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "The one of this morning."}]
keeping = walked(lambda: session.prepare(messages))
assert session.status().compaction_count == 0
big = Lowwater(model="claude-opus-5-5", policy="runway", store=f"sqlite:///{folder}/t.db").session("compacting")
session = big
big.learn_context_length(40_000)
messages = [{"role": "user", "content": "Find out why the build fails."}]
for number in range(60):
    before = session.status().compaction_count
    compacting = walked(lambda: session.prepare(messages))
    if session.status().compaction_count > before:
        break
    turn(number, 90)
else:
    raise SystemExit("nothing was compacted")
print(json.dumps({"keeping": keeping, "compacting": compacting}))
"""

_LOADED = """
import sys
from lowwater import Lowwater
print(sum(name == "lowwater" or name.startswith("lowwater.") for name in sys.modules))
"""


def walked_turns(source: Path = ROOT) -> dict[str, dict[str, int]]:
    """Return how often each function of ours runs in a second `prepare` that keeps and in one that compacts, as `core/turns/turn.py prepare`."""
    calls: dict[str, dict[str, int]] = json.loads(_python(source, "-c", _WALK))
    return calls


def modules_of(calls: dict[str, int]) -> set[str]:
    """Return the modules of these functions."""
    return {function.split()[0] for function in calls}


def loaded_modules(source: Path = ROOT) -> int:
    """Return how many of our modules `from lowwater import Lowwater` loads."""
    return int(_python(source, "-c", _LOADED))


def measure(source: Path) -> dict[str, Any]:
    """Return everything that is measured of a checkout."""
    package = source / "src" / "lowwater"
    files = sorted(package.rglob("*.py"))
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    by_package: Counter[str] = Counter()
    for path, count in lines.items():
        within = path.relative_to(package).parts
        by_package[within[0] if len(within) > 1 else "(top level)"] += count
    return {
        "files": len(files),
        "lines": sum(lines.values()),
        "lines_by_package": dict(sorted(by_package.items())),
        "modules_with_one_importer": _with_one_importer(package, files),
        **{
            turn: {"modules": len(modules_of(calls)), "functions": len(calls)}
            for turn, calls in walked_turns(source).items()
        },
        "modules_loaded_by_import": loaded_modules(source),
        "seconds_of_import": _seconds(source, "-c", "from lowwater import Lowwater"),
        "seconds_of_version": _seconds(source, "-m", "lowwater", "--version"),
    }


def _with_one_importer(package: Path, files: list[Path]) -> int:
    """Return how many modules exactly one other module of ours imports."""
    names = {_name(path, package): path for path in files}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, path in names.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                found = [
                    each if (each := f"{node.module}.{alias.name}") in names else node.module
                    for alias in node.names
                ]
            elif isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            for each in found:
                if each in names and each != name:
                    importers[each].add(name)
    return sum(len(by) == 1 for by in importers.values())


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _environment(source: Path) -> dict[str, str]:
    # What is measured is an installed package, whose modules are compiled: compiling would be most of the time.
    left_out = ("LOWWATER_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "PYTHONPATH": str(source / "src")}


def _python(source: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    run = subprocess.run(  # noqa: S603 - our own code
        command, env=_environment(source), capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"{source} could not be measured:\n{run.stderr.strip()}")
    return run.stdout


def _seconds(source: Path, *arguments: str) -> float:
    """Return the processor time of the fastest of several runs, the interpreter's own start not counted."""
    empty = min(_processor_time(source, "-c", "pass") for _ in range(_TIMES))
    return round(min(_processor_time(source, *arguments) for _ in range(_TIMES)) - empty, 3)


def _processor_time(source: Path, *arguments: str) -> float:
    before = os.times()
    _python(source, *arguments)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)


def _table(figures: dict[str, Any]) -> str:
    rows = [
        ("files", f"{figures['files']:,}"),
        ("lines", f"{figures['lines']:,}"),
        *((f"  {package}", f"{lines:,}") for package, lines in figures["lines_by_package"].items()),
        ("modules with exactly one importer", f"{figures['modules_with_one_importer']:,}"),
        ("a second prepare() that keeps: modules", f"{figures['keeping']['modules']}"),
        ("  functions", f"{figures['keeping']['functions']}"),
        ("a prepare() that compacts: modules", f"{figures['compacting']['modules']}"),
        ("  functions", f"{figures['compacting']['functions']}"),
        ("modules loaded by `from lowwater import Lowwater`", f"{figures['modules_loaded_by_import']}"),
        ("  seconds of processor time", f"{figures['seconds_of_import']:.3f}"),
        ("`lowwater --version`: seconds of processor time", f"{figures['seconds_of_version']:.3f}"),
    ]
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {value:>8}" for label, value in rows)


def main() -> None:
    """Measure a checkout and print it."""
    parser = argparse.ArgumentParser(
        description="Measure files, lines, imports and what a turn walks through."
    )
    parser.add_argument(
        "--source", type=Path, default=ROOT, help="the checkout to measure (default: this one)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    chosen = parser.parse_args()
    figures = measure(chosen.source.resolve())
    sys.stdout.write((json.dumps(figures, indent=2) if chosen.json else _table(figures)) + "\n")


if __name__ == "__main__":
    main()
