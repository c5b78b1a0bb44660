"""Whether a session's prefix is still in the provider's cache, in words."""

from collections.abc import Sequence

from lowwater.cli.kept_words import ago, span
from lowwater.core.events import TurnRecord
from lowwater.core.models.model import Marks, Model, Uncached


def cache_state(records: Sequence[TurnRecord], model: Model, now: float) -> str:
    """Return whether the last call's prefix is warm or cold, as far as timestamps and published lifetimes tell."""
    last = records[-1] if records else None
    if last is None or isinstance(model.cache.matching, Uncached):
        return ""
    called = f"the last call was {ago(last.at, now)}"
    if last.model != model.name:
        return f"; cold: {called}, to {last.model}"
    usage = last.usage
    marked_only = isinstance(model.cache.matching, Marks) and model.cache.matching.unmarked == "uncached"
    if marked_only and usage is not None and usage.prompt == usage.uncached:
        return f"; cold: the last call, {ago(last.at, now)}, left nothing in it"
    is_long = usage is not None and usage.cache_write_long > 0
    lifetime = model.cache.ttl_long if is_long and model.cache.ttl_long else model.cache.ttl
    if lifetime is None:
        return f"; {called}, its lifetime is not published"
    left = last.at + lifetime - now
    return f"; warm for {span(left)} more" if left >= 0 else f"; cold: {called}, kept {span(lifetime)}"
