"""Runs `lowwater` in this process and returns the JSON it prints, without what may differ from one machine to the next."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from lowwater.cli import main

_PROSE = frozenset({"said", "path", "broken_at"})
"""Sentences for people, and places on this machine."""


def json_of(*arguments: str, folder: Path) -> Any:
    """Return what a command prints as JSON, run in `folder` by somebody without settings whose clock shows UTC."""
    printed = StringIO()
    with chdir(folder), _environment(folder), _arguments(arguments), redirect_stdout(printed):
        try:
            main()
        except SystemExit as leaving:
            assert not leaving.code, f"lowwater {' '.join(arguments)} left with {leaving.code}"
    return _without_prose(json.loads(printed.getvalue()))


@contextmanager
def _arguments(arguments: tuple[str, ...]) -> Iterator[None]:
    before, sys.argv = sys.argv, ["lowwater", *arguments]
    try:
        yield
    finally:
        sys.argv = before


@contextmanager
def _environment(home: Path) -> Iterator[None]:
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(("LOWWATER_", "XDG_"))]:
        del os.environ[name]
    os.environ.update(HOME=str(home), TZ="UTC")
    time.tzset()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


def _without_prose(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_prose(value) for key, value in tree.items() if key not in _PROSE}
    return [_without_prose(value) for value in tree] if isinstance(tree, list) else tree
