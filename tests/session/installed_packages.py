"""Packages as an installer leaves them: a folder on the path with their modules and what is told of their entry points."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lowwater.session import plugins

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugins"
PATH = EXAMPLE / "src"

Points = Mapping[str, Mapping[str, str]]
"""What entry points name, by group and name."""


def add_package(folder: Path, name: str, points: Points, modules: Mapping[str, str] | None = None) -> None:
    """Put a package into a folder that is on the path, or will be."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines: list[str] = []
    for group, named in points.items():
        lines += [f"[{group}]", *(f"{point} = {target}" for point, target in named.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, code in (modules or {}).items():
        (folder / f"{module}.py").write_text(code)


def add_example(folder: Path) -> None:
    """Put what the example's pyproject.toml says into a folder; its modules are in PATH."""
    project: dict[str, Any] = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    add_package(folder, project["name"], project["entry-points"])


def put_on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let this process, and those it starts, find what is in the folders, until the test ends."""
    for folder in folders:
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, folders)))
    look_again()


def take_off_path(*folders: Path) -> None:
    """Uninstall what is in the folders, as far as this process goes."""
    for folder in folders:
        sys.path.remove(str(folder))
    look_again()


def look_again() -> None:
    """Forget what was installed when it was last looked for."""
    plugins.installed.cache_clear()
