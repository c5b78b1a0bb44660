"""Async twins of blocking methods, each made from the method itself, so that the two cannot differ."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def async_twin(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return a coroutine method that calls `method` on a thread."""

    @wraps(method)
    async def twin(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        import asyncio  # noqa: PLC0415 - those who await have it loaded

        return await asyncio.to_thread(method, self, *args, **options)

    twin.__name__ = f"a{method.__name__}"
    twin.__qualname__ = method.__qualname__.replace(method.__name__, twin.__name__)
    twin.__doc__ = f"Do what `{method.__name__}` does and leave the event loop free."
    return twin
