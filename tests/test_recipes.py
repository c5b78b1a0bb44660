"""The recipes of CONTRIBUTING.md, followed literally in a copy of Lowwater."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = re.compile(r"<!-- (?P<path>[\w/]+\.py) -->\n```python\n(?P<code>.*?)```", re.DOTALL)
MODEL = re.compile(r"<!-- data/models.json -->\n```json\n(?P<row>.*?)```", re.DOTALL)
TALK = """
from lowwater import Lowwater

messages = [{"role": "user", "content": "Look after the building."}]

def walk(number):
    call = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"look {number}"}}
    messages.append({"role": "assistant", "content": [call]})
    page = " ".join(f"Room {room} of part {number} is in order." for room in range(900))
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": page}
    messages.append({"role": "user", "content": [result]})

def talk(number):
    said = " ".join(f"Room {room} of part {number} has a door." for room in range(900))
    messages.append({"role": "assistant", "content": said})
    messages.append({"role": "user", "content": "And the next part?"})
"""
USE_POLICY = """
session = Lowwater(model="claude-opus-5-5", policy="long-lists", store="memory:").session("walk")
for number in range(30):
    walk(number)
    session.prepare(messages)
    if session.status().last_compaction:
        break
print(session.status().last_compaction.because.code, session.status().last_compaction.mechanisms)
print(session.explain())
print(session.status().compaction_count)
"""
USE_MECHANISM = """
with Lowwater(model="claude-opus-5-5") as lowwater:
    session = lowwater.session("talk")
    for number in range(40):
        talk(number)
        walk(number)
    session.prepare(messages)
    usage = {"input_tokens": 100, "output_tokens": 4}
    said = [{"type": "text", "text": "Done."}]
    session.record({"type": "message", "role": "assistant", "content": said, "usage": usage})
    print(session.explain())
"""
JOURNAL = """{"journal": "monday", "model": "gpt-4o-lake"}
{"who": "user", "said": "Good morning."}
{"who": "assistant", "said": "Hello!", "at": 1800000001, "usage": {"prompt_tokens": 2000, "completion_tokens": 100}}
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with everything that CONTRIBUTING.md shows."""
    root = tmp_path_factory.mktemp("recipes")
    package = root / "src" / "lowwater"
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for shown in FILES.finditer(recipes):
        of_tests = shown["path"].startswith("tests/")
        file = (root if of_tests else package) / shown["path"]
        assert not file.exists(), f"{file} exists already"
        assert not (ROOT / shown["path"]).exists(), f"{shown['path']} exists already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shown["code"], encoding="utf-8")
    models = package / "data" / "models.json"
    listed = json.loads(models.read_text(encoding="utf-8"))
    listed["models"] += [json.loads(shown["row"]) for shown in MODEL.finditer(recipes)]
    models.write_text(json.dumps(listed), encoding="utf-8")
    return root


def run(root: Path, *arguments: str) -> str:
    """Run the copy's Python and return what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOWWATER_")}
    environment = {**kept, "PYTHONPATH": str(root / "src"), "LOWWATER_STORE": f"sqlite:///{root}/kept.db"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lowwater(root: Path, *arguments: str) -> str:
    return run(root, "-m", "lowwater", *arguments)


def test_a_policy_is_one_file(copied: Path) -> None:
    said = run(copied, "-c", TALK + USE_POLICY)
    assert said.startswith("long-list ('elide',)")
    assert "messages; from forty on it is pruned." in said
    assert said.rstrip().endswith("1")


def test_a_mechanism_is_one_file(copied: Path) -> None:
    said = run(copied, "-c", TALK + USE_MECHANISM)
    assert "1. Cut long old answers down to their beginning: about " in said
    assert "2. Put short placeholders in place of old tool results: about " in said
    assert "On sale: placeholders for long answers, old results, " in said
    assert "expected rework" in said
    (compaction,) = json.loads(lowwater(copied, "sessions", "history", "talk", "--json"))["compactions"]
    assert [phase["mechanism"] for phase in compaction["phases"]] == ["answers", "elide"]
    assert all(phase["removed"] > 10_000 for phase in compaction["phases"])
    assert "answers" in lowwater(copied, "sessions", "history", "talk")
    assert json.loads(lowwater(copied, "status", "--all", "--json"))["cadence"]["prunes"] == 1


def test_a_log_importer_is_one_file(copied: Path) -> None:
    log = copied / "monday.log"
    log.write_text(JOURNAL, encoding="utf-8")
    (audited,) = json.loads(lowwater(copied, "audit", str(log), "--json"))["sessions"]
    assert (audited["name"], audited["agent"], audited["calls"]) == ("monday", "journal", 1)
    assert audited["cost"] == 2_000 * 3_000 + 100 * 9_000
    assert "in 2 messages" in lowwater(copied, "inspect", str(log))


def test_a_model_is_one_row(copied: Path) -> None:
    found = json.loads(lowwater(copied, "models", "openai/GPT-4o-lake", "--json"))
    assert (found["how"], found["model"]["name"], found["model"]["context_length"]) == (
        "listed",
        "gpt-4o-lake",
        96_000,
    )
    assert found["model"]["usd_per_million_tokens"]["output"] == 9.0
    assert found["model"]["assumptions"] == []


def test_the_tests_that_the_recipes_show_pass(copied: Path) -> None:
    said = run(copied, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "tests")
    assert re.search(r"^2 passed", said, re.MULTILINE), said
