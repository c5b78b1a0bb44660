"""Token counts of Copilot CLI: of a session as a whole, and of each of its compactions."""

from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens


class _Requests(Struct):
    count: int | None = None


class Figures(Struct):
    """Tokens; the input includes what was read from the cache and written to it."""

    inputTokens: Tokens = None  # noqa: N815  # Copilot's spelling, here and below
    outputTokens: Tokens = None  # noqa: N815
    cacheReadTokens: Tokens = None  # noqa: N815
    cacheWriteTokens: Tokens = None  # noqa: N815


class Metrics(Struct):
    """What one model's calls came to."""

    requests: _Requests | None = None
    usage: Figures | None = None

    @property
    def is_one_call(self) -> bool:
        """Whether they are the counts of a single call."""
        return self.requests is not None and self.requests.count == 1


class Spent(Figures):
    """What a compaction consumed, in the names of either version."""

    input: Tokens = None
    output: Tokens = None
    cachedInput: Tokens = None  # noqa: N815


def usage_of(metrics: Metrics) -> Usage | None:
    """Return the counts in parts that do not overlap; None if there are none."""
    return _apart(metrics.usage) if metrics.usage and metrics.usage.inputTokens else None


def spent(used: Spent) -> Usage:
    """Return what a compaction consumed, in parts that do not overlap."""
    return _apart(
        Figures(
            inputTokens=used.inputTokens or used.input,
            outputTokens=used.outputTokens or used.output,
            cacheReadTokens=used.cacheReadTokens or used.cachedInput,
            cacheWriteTokens=used.cacheWriteTokens,
        )
    )


def _apart(figures: Figures) -> Usage:
    prompt = figures.inputTokens or 0
    read = min(figures.cacheReadTokens or 0, prompt)
    written = min(figures.cacheWriteTokens or 0, prompt - read)
    return Usage(
        uncached=prompt - read - written,
        cache_read=read,
        cache_write=written,
        output=figures.outputTokens or 0,
    )
