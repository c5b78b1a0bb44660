"""Token counts of a Codex rollout: each told once, in parts that do not overlap, with the answer it belongs to."""

from msgspec import Raw, Struct

from lowwater.core.api_calls import Usage
from lowwater.core.formats.usage import Tokens
from lowwater.core.strict_json import read_json
from lowwater.replay.importing.chat_session import Answer


class _Figures(Struct):
    input_tokens: Tokens = None
    cached_input_tokens: Tokens = None
    cache_write_input_tokens: Tokens = None
    output_tokens: Tokens = None


class _Info(Struct):
    total_token_usage: _Figures | None = None
    last_token_usage: _Figures | None = None


class Counter:
    """The counts so far, and the answers that still wait for theirs."""

    def __init__(self) -> None:
        self.prompt: int | None = None
        """That of the last call."""
        self._total: Usage | None = None
        self._waiting: list[Answer] = []
        self._unseen: list[Usage] = []

    def answered(self, answer: Answer) -> None:
        """Take note of an answer whose count is to come."""
        answer.others += self._unseen
        self._unseen = []
        self._waiting.append(answer)

    def count(self, raw: Raw) -> bool:
        """Read a count and tell whether it is new: Codex repeats the last one when it learns of rate limits.

        What the total grew by beyond the last call belongs to a call that had no count of its own; a call that gave
        no answer, such as one that summarised, is told beside the next.
        """
        info = read_json(bytes(raw), _Info) if bytes(raw) not in (b"", b"null") else _Info()
        total = _usage(info.total_token_usage) if info.total_token_usage else None
        last = _usage(info.last_token_usage) if info.last_token_usage else None
        if (total is None and last is None) or (total is not None and total == self._total):
            return False
        grown = _less(total, self._total or Usage()) if total else None
        before, self._total = self._total, total
        usage = last or grown
        if usage is None:
            return False
        self.prompt = usage.prompt
        missed = _less(grown, usage) if grown and before else None
        self._give(usage, missed if missed and missed.prompt else None)
        return True

    def _give(self, usage: Usage, missed: Usage | None) -> None:
        if not self._waiting:
            self._unseen += [missed, usage] if missed else [usage]
            return
        *earlier, newest = self._waiting
        newest.usage = usage
        if missed and len(earlier) == 1:
            earlier[0].usage = missed
        elif missed:
            newest.others.append(missed)
        self._waiting = []


def _usage(figures: _Figures) -> Usage:
    """Return the figures taken apart: at OpenAI the input includes what was read from the cache and written to it."""
    prompt = figures.input_tokens or 0
    read = min(figures.cached_input_tokens or 0, prompt)
    written = min(figures.cache_write_input_tokens or 0, prompt - read)
    return Usage(
        uncached=prompt - read - written,
        cache_read=read,
        cache_write=written,
        output=figures.output_tokens or 0,
    )


def _less(whole: Usage, some: Usage) -> Usage | None:
    """Return the difference, or None if the counts began anew."""
    left = Usage(
        uncached=whole.uncached - some.uncached,
        cache_read=whole.cache_read - some.cache_read,
        cache_write=whole.cache_write - some.cache_write,
        output=whole.output - some.output,
    )
    return left if min(left.uncached, left.cache_read, left.cache_write, left.output) >= 0 else None
