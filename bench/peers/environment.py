"""An environment of its own for a peer: they pin each other's dependencies away."""

import re
import subprocess
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / "bench" / ".envs"
READY = "installed.txt"
"""The requirements an environment was made with; pip can read it."""


class Unavailable(Exception):
    """The peer's package could not be installed or run."""


def python_with(name: str, *requirements: str, lowwater: bool = False) -> Path:
    """Return the interpreter of the environment `name`, made on first use with the requirements installed in it.

    With `lowwater` this tree is installed too, editable, and again when its `pyproject.toml` has changed. What was
    asked of the same environment before stays, other versions replace it. Processes that ask at once wait for each other.
    """
    home = ENVIRONMENTS / name
    ready = home / READY
    wanted = [*requirements, *(_this_tree() if lowwater else [])]
    with _alone(name):
        there = ready.read_text().splitlines() if ready.exists() else []
        if not set(wanted) <= set(there):
            _install(home, wanted)
            ready.write_text("\n".join([*held_after(there, wanted), ""]))
    return home / "bin" / "python"


def held_after(there: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return what an environment holds once more was installed: other extras of a version beside it, other versions instead."""
    asked = {_project_of(line): _version_of(line) for line in wanted}
    kept = [line for line in there if asked.get(_project_of(line), _version_of(line)) == _version_of(line)]
    return list(dict.fromkeys([*kept, *wanted]))


def _install(home: Path, wanted: Sequence[str]) -> None:
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    asked = home / "wanted.txt"
    asked.write_text("\n".join(wanted))
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--requirement", str(asked)], capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise Unavailable(f"{', '.join(wanted)} could not be installed into {home}: {last}")


def _this_tree() -> list[str]:
    """Return the lines that ask for this tree, and tell one state of its dependencies and entry points from another."""
    digest = sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return [f"--editable {ROOT}", f"# pyproject.toml: {digest}"]


def _project_of(line: str) -> str:
    """Return what a line of requirements asks for, without extras and version; of `--editable`, one tree stands for another."""
    return re.split(r"[\[<>=!~;:]|(?<=--editable) ", line, maxsplit=1)[0].strip()


def _version_of(line: str) -> str:
    """Return which version of it, whatever the extras."""
    return re.sub(r"\[.*?\]", "", line)[len(_project_of(line)) :].strip()


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Keep other processes from the environment meanwhile."""
    import fcntl  # noqa: PLC0415 - POSIX only, and tests that install nothing import this module

    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
