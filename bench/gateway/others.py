"""Other projects' proxies, each from PyPI in an environment of its own."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from bench.gateway.processes import Running

Start = Callable[[ExitStack, Path, str], Running]


class Missing(Struct, frozen=True, kw_only=True):
    """A proxy that could not be measured."""

    name: str
    why: str


class Other(Struct, frozen=True, kw_only=True):
    """A proxy, and how it is started in front of an upstream."""

    name: str
    start: Start


OTHERS: tuple[Other, ...] = ()
