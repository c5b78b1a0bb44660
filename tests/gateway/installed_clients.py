"""Real clients for the gateway, each installed on first use into a folder of its own under `bench/.envs`."""

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct

from bench.peers.environment import ENVIRONMENTS, python_with

NPM = ENVIRONMENTS / "npm"


class Package(Struct, frozen=True, kw_only=True):
    """A client that npm has."""

    name: str
    """Its program."""
    asked: str
    """The package with the version that was tested."""
    unpacks: str = ""
    """The script that puts its program in place, which npm is not allowed to run by itself."""


CLAUDE = Package(
    name="claude",
    asked="@anthropic-ai/claude-code@2.1.197",
    unpacks="node_modules/@anthropic-ai/claude-code/install.cjs",
)
CODEX = Package(name="codex", asked="@openai/codex@0.166.0")
OPENCODE = Package(
    name="opencode", asked="opencode-ai@1.18.33", unpacks="node_modules/opencode-ai/postinstall.mjs"
)
HERMES = "hermes-agent==0.19.0"
AIDER = "aider-chat==0.86.2"


def program_of(package: Package) -> Path:
    """Return a client's program, installed on first use; what cannot be installed fails the test."""
    home = NPM / package.name
    home.mkdir(parents=True, exist_ok=True)
    program, ready = home / "node_modules" / ".bin" / package.name, home / "installed.txt"
    with (NPM / f"{package.name}.lock").open("w") as lock:
        fcntl = pytest.importorskip("fcntl", reason="needs POSIX file locks")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text() != package.asked:
            _install(package, home)
            ready.write_text(package.asked)
    return program


def hermes() -> Path:
    """Return the program of Hermes, in the environment of its own that the benchmarks use as well."""
    return python_with("hermes", HERMES, lowwater=True).with_name("hermes")


def aider() -> Path:
    """Return the program of aider, in an environment of its own."""
    return python_with("aider", AIDER).with_name("aider")


def _install(package: Package, home: Path) -> None:
    npm = shutil.which("npm")
    assert npm, (
        f"{package.asked} cannot be installed: there is no npm on the PATH (install Node.js 18 or newer)"
    )
    (home / "package.json").write_text('{"private": true}')
    _run(package, home, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", package.asked)
    if package.unpacks:
        script = home / package.unpacks
        _run(package, script.parent, "node", script.name)


def _run(package: Package, folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    last = done.stderr.strip().rpartition("\n")[2]
    assert done.returncode == 0, f"{package.asked} could not be installed into {folder}: {last}"
