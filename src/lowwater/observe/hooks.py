"""Memory hooks: whoever wants to save something before messages leave the view is told in time (SPEC H)."""

import logging
from collections.abc import Iterable, Sequence

from lowwater.ports import MemoryHook

_log = logging.getLogger("lowwater")


def announce(hooks: Iterable[MemoryHook], session: str, messages: Sequence[object]) -> None:
    """Hand the view to every hook and have it flush what it gathered, if it can; one that fails is logged by the kind of its error."""
    for hook in hooks:
        try:
            hook.on_pre_compress(messages)
            flush = getattr(hook, "flush", None)
            if callable(flush):
                flush()
        except Exception as error:  # noqa: BLE001  # a memory must never stop a compaction
            _log.warning("%s: a memory hook failed before a compaction: %s", session, type(error).__name__)
