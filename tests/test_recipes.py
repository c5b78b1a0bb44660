"""The recipes of CONTRIBUTING.md, followed literally in a copy of Lowwater."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = re.compile(r"<!-- (?P<path>[\w/]+\.py) -->\n```python\n(?P<code>.*?)```", re.DOTALL)
USE_POLICY = """
from lowwater import Lowwater

messages = [{"role": "user", "content": "Look after the building."}]
session = Lowwater(model="claude-opus-5-5", policy="long-lists", store="memory:").session("walk")
for number in range(30):
    call = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"look {number}"}}
    messages.append({"role": "assistant", "content": [call]})
    page = " ".join(f"Room {room} of part {number} is in order." for room in range(900))
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": page}
    messages.append({"role": "user", "content": [result]})
    session.prepare(messages)
    if session.status().last_compaction:
        break
print(session.status().last_compaction.because.code, session.status().last_compaction.mechanisms)
print(session.explain())
print(session.status().compaction_count)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with every file that CONTRIBUTING.md shows."""
    source = tmp_path_factory.mktemp("recipes") / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    for shown in FILES.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        file = source / "lowwater" / shown["path"]
        assert not file.exists(), f"{file} exists already"
        file.write_text(shown["code"], encoding="utf-8")
    return source


def run(source: Path, code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source), "LOWWATER_STORE": "memory:"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_policy_is_one_file(copied: Path) -> None:
    said = run(copied, USE_POLICY)
    assert said.startswith("long-list ('elide',)")
    assert "messages; from forty on it is pruned." in said
    assert said.rstrip().endswith("1")
