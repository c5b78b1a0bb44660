"""The import contracts hold, and a violation of each is found."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_project_keeps_its_contracts(copy: Path) -> None:
    run = lint_imports(copy)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        (
            "core/messages.py",
            "import lowwater.core.formats.codec",
            "lowwater.core.messages is not allowed to import lowwater.core.formats",
        ),
        (
            "core/formats/codec.py",
            "import lowwater.core.tokens.counting",
            "lowwater.core.formats is not allowed to import lowwater.core.tokens",
        ),
        (
            "adapters/models.py",
            "import lowwater.session.factories",
            "lowwater.adapters is not allowed to import lowwater.session",
        ),
        ("core/messages.py", "import time", "lowwater.core is not allowed to import time"),
        ("core/tokens/counting.py", "import splintr", "lowwater.core is not allowed to import splintr"),
        ("core/strict_json.py", "import logging", "lowwater.core is not allowed to import logging"),
        ("errors.py", "import asyncio", "lowwater.errors is not allowed to import asyncio"),
        (
            "cli/demo.py",
            "import lowwater.testing.fakes",
            "Illegal imports of protected package lowwater.testing",
        ),
        (
            "lab/optimum.py",
            "import lowwater.testing",
            "Illegal imports of protected package lowwater.testing",
        ),
    ],
    ids=[
        "up",
        "sideways",
        "adapter to session",
        "clock in messages",
        "package in core",
        "log in core",
        "async in core",
        "testing in a command",
        "testing in the replay",
    ],
)
def test_a_violation_is_found(copy: Path, module: str, line: str, broken: str) -> None:
    path = copy / "src" / "lowwater" / module
    path.write_text(path.read_text() + f"\n{line}\n")
    run = lint_imports(copy)
    assert run.returncode == 1, run.stdout
    assert broken in run.stdout


def test_a_module_without_a_layer_is_found(copy: Path) -> None:
    (copy / "src" / "lowwater" / "utils.py").write_text('"""Nobody\'s room."""\n')
    run = lint_imports(copy)
    assert run.returncode == 1
    assert "utils" in run.stdout


@pytest.mark.parametrize(
    ("contract", "heading"), [("layers", "layers"), ("core-layers", "layers of core")], ids=["all", "core"]
)
def test_architecture_shows_the_layers_of_the_contract(contract: str, heading: str) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = [each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == contract]
    package = ROOT / "src" / Path(*found["containers"][0].split("."))
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = re.search(rf"<!-- {heading} -->\n```text\n(.*?)```", page, re.DOTALL)
    assert block is not None
    shown = [re.split(r"\s{2,}", line)[0] for line in block[1].splitlines()]
    assert shown == [_existing(layer, package) for layer in found["layers"]]


def _existing(layer: str, package: Path) -> str:
    """Return a layer without the optional packages that do not exist."""
    between = " : " if ":" in layer else " | "
    names = [name.strip("()") for name in re.split(r"\s*[:|]\s*", layer)]
    return between.join(
        name for name in names if (package / name).is_dir() or (package / f"{name}.py").is_file()
    )
