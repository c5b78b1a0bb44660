"""The built wheel, installed alone into a new environment, runs every command of the README's first screen."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from lowwater.testing import demo_session

pytestmark = pytest.mark.full
ROOT = Path(__file__).parents[1]
TYPED = """
from lowwater import Lowwater

session = Lowwater(model="claude-opus-5-5", store="memory:").session("typed")
reveal_type(session.status().prompt)
"""
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment that holds nothing but the wheel and what it depends on."""
    made = tmp_path_factory.mktemp("wheel")
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", made, ROOT], check=True)
    (wheel,) = made.glob("lowwater-*.whl")
    venv.create(made / "env", with_pip=True)
    found = made / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([found, *pip, "install", "--constraint", ROOT / "constraints.txt", wheel], check=True)
    return found


@pytest.fixture
def lowwater(python: Path, tmp_path: Path) -> Command:
    def call(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "COLUMNS": "100",
            "XDG_CACHE_HOME": str(tmp_path),
        }
        done = subprocess.run(
            [str(python.parent / "lowwater"), *args],
            cwd=tmp_path,
            env=own | env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"lowwater {' '.join(args)}: {done.stderr}"
        return done

    return call


@pytest.fixture
def exported(lowwater: Command, tmp_path: Path) -> Path:
    """Return the log of a session, as Lowwater exports it, where audit finds recordings."""
    log = tmp_path / "log.json"
    log.write_text(json.dumps(demo_session(turns=40).as_openai_chat()))
    return log


def test_every_command_of_the_first_screen_runs(lowwater: Command, exported: Path, tmp_path: Path) -> None:
    log = str(exported)
    assert lowwater("--version").stdout.startswith("lowwater ")
    assert "tool results" in lowwater("inspect", log).stdout
    assert lowwater("compress", log).stdout.startswith("[")
    assert "1 session" in lowwater("audit", log).stdout
    assert "rent-or-buy" in lowwater("replay", log, "--model", "anthropic-r10").stdout
    assert "claude-opus-5-5" in lowwater("models").stdout
    assert "max_view_tokens" in lowwater("config").stdout
    assert "untouched and with Lowwater" in lowwater("demo", "--fast").stdout
    ran = lowwater("run", "--", sys.executable, "-c", "print('the client ran')")
    assert "the client ran" in ran.stdout
    assert "compacting when it pays" in ran.stderr


def test_the_types_of_the_installed_package_are_seen(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--python-executable",
            str(python),
            str(program),
        ],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'int"' in checked.stdout, checked.stdout
    assert checked.returncode == 0
