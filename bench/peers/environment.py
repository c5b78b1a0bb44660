"""An environment of its own for a peer: they pin each other's dependencies away."""

import subprocess
import venv
from pathlib import Path

ENVIRONMENTS = Path(__file__).parents[1] / ".envs"


class Unavailable(Exception):
    """The peer's package could not be installed."""


def python_with(name: str, requirement: str) -> Path:
    """Return the interpreter of the environment `name`, made on first use with `requirement` installed in it."""
    home = ENVIRONMENTS / name
    python, ready = home / "bin" / "python", home / f"{requirement}.ready"
    if not ready.exists():
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().rpartition("\n")[2]
            raise Unavailable(f"{requirement} could not be installed into {home}: {last}")
        ready.touch()
    return python
