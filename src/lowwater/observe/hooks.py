"""Memory hooks: whoever wants to save something before messages leave the view is told in time (docs/specification.md: H)."""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from contextvars import copy_context

from lowwater.protocols import MemoryHook

_log = logging.getLogger("lowwater")


def announce(
    hooks: Iterable[MemoryHook], session: str, messages: Sequence[object], *, seconds: float
) -> None:
    """Hand the view to every hook and have it flush what it gathered, if it can; wait for all of them for `seconds`.

    One that fails is logged by the kind of its error. One that is not done in time goes on by itself, on a thread that keeps
    nobody from leaving, while the turn goes on without it; those behind it are told all the same.
    """
    until = time.monotonic() + seconds
    for hook in hooks:
        context = copy_context()
        thread = threading.Thread(
            target=context.run, args=(_told, hook, session, messages), name="lowwater-hook", daemon=True
        )
        thread.start()
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            _log.warning(
                "%s: a memory hook was not done within the turn's deadline and is left behind: %s",
                session,
                type(hook).__name__,
            )


def _told(hook: MemoryHook, session: str, messages: Sequence[object]) -> None:
    try:
        hook.on_pre_compress(messages)
        flush = getattr(hook, "flush", None)
        if callable(flush):
            flush()
    except BaseException as error:  # noqa: BLE001  # a memory must never stop a compaction, nor may its exit
        _log.warning("%s: a memory hook failed before a compaction: %s", session, type(error).__name__)
