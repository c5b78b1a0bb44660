"""Running the real commands on a store in a file, as a terminal of some width would."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from lowwater.cli.app import app


def run(store: Path, *args: str, columns: int = 80) -> Result:
    """Run a command on a store."""
    env = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner(env=env).invoke(app, [*args, "--store", f"sqlite:///{store}"])


def shown(store: Path, *args: str, columns: int = 80) -> str:
    """Return what a command that succeeds prints; only commands to paste may be wider than the terminal."""
    done = run(store, *args, columns=columns)
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if not line.strip().startswith("lowwater ")]
    assert max(map(len, lines)) <= columns
    return done.stdout


def told(store: Path, *args: str) -> Any:
    """Return what a command that succeeds tells programs."""
    done = run(store, *args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(store: Path, *args: str) -> str:
    """Return the one sentence that a command fails with."""
    done = run(store, *args)
    assert done.exit_code == 1, done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)
