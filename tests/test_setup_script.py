"""Setting up says in one sentence what is missing and how to install it."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A copy of the script on a machine that has a shell and nothing else."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tmp_path / "tools")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "uname", "printf", "rm", "touch"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    return tmp_path


def set_up(machine: Path) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(machine / "tools" / "setup.sh")]
    environment = {"PATH": str(machine / "bin")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_machine_without_python_is_told_how_to_get_it(bare: Path) -> None:
    run = set_up(bare)
    assert run.returncode == 1
    assert run.stderr.startswith("lowwater: Python 3.11 or newer is missing; install it with: ")
    assert run.stderr.count("\n") == 1


def test_a_python_without_venv_is_told_how_to_get_it(bare: Path) -> None:
    python = bare / "bin" / "python3"
    python.write_text('#!/bin/sh\ncase "$2" in *venv*) exit 1;; *) exit 0;; esac\n')
    python.chmod(0o755)
    run = set_up(bare)
    assert run.returncode == 1
    assert (
        run.stderr
        == "lowwater: python3 has no venv module; install it with: sudo apt-get install python3-venv\n"
    )


def test_a_python_that_is_too_old_does_not_count(bare: Path) -> None:
    python = bare / "bin" / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    assert "Python 3.11 or newer is missing" in set_up(bare).stderr
