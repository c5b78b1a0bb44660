"""Models of the providers' prompt caches: what each reads, writes and forgets."""

import re
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from time import monotonic
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from lowwater.testing.provider.prompt import BREAKPOINT, Count, Prompt, PromptPiece

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
FOREVER = float("inf")


class Used(Struct, frozen=True, kw_only=True):
    """The tokens of one prompt by the way they are billed; no token is counted twice."""

    read: int = 0
    written: int = 0
    written_long: int = 0
    uncached: int = 0

    @property
    def prompt(self) -> int:
        """The tokens of the whole prompt."""
        return self.read + self.written + self.written_long + self.uncached


class Cache(Protocol):
    """What one machine holds for one model."""

    def use(self, prompt: Prompt, now: float) -> Used:
        """Return how a prompt sent at `now` is billed, and cache what it and its answer leave behind."""
        ...


class _Entry(Struct, kw_only=True):
    used: float
    lifetime: float


class Entries:
    """Cached prefixes; one expires when it has not been used for its lifetime."""

    def __init__(self) -> None:
        self._held: dict[bytes, _Entry] = {}

    def alive(self, prefix: bytes, now: float) -> bool:
        """Return whether a prefix is cached and has not expired."""
        entry = self._held.get(prefix)
        return entry is not None and now - entry.used <= entry.lifetime

    def touch(self, prefix: bytes, now: float) -> None:
        """Restart the lifetime of a prefix, unless it has expired."""
        if self.alive(prefix, now):
            self._held[prefix].used = now

    def put(self, prefix: bytes, lifetime: float, now: float) -> None:
        """Cache a prefix from now on; if it is cached already, the longer lifetime wins."""
        if self.alive(prefix, now):
            lifetime = max(lifetime, self._held[prefix].lifetime)
        self._held[prefix] = _Entry(used=now, lifetime=lifetime)


# Anthropic: caches what is marked

LOOKBACK = 20
"""How many blocks before a mark are searched for a cached prefix."""
LIFETIMES = {"5m": 300.0, "1h": 3_600.0}
"""Seconds, by the `ttl` of a mark."""


class MarkedCache:
    """Writes at marks, reads at a mark or up to twenty blocks before it, and restarts the lifetime of what it reads.

    A mark after fewer than `least` tokens writes nothing. A read restarts the lifetimes of all shorter prefixes, too.
    """

    def __init__(self, *, least: int = 0, lifetimes: Mapping[str, float] = LIFETIMES) -> None:
        self._least = least
        self._lifetimes = lifetimes
        self._entries = Entries()

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt, and cache what it writes."""
        marks = [at for at in prompt.marked(*self._lifetimes) if prompt.ends[at] >= self._least]
        hit = max((self._found(prompt, at, now) for at in marks), default=-1)
        for at in range(hit + 1):
            self._entries.touch(prompt.digests[at], now)
        billed = prompt.end_of(hit)
        written = dict.fromkeys(self._lifetimes, 0)
        for at in marks:
            lifetime = prompt.pieces[at].mark
            if at > hit:
                written[lifetime] += prompt.ends[at] - billed
                billed = prompt.ends[at]
            if not self._entries.alive(prompt.digests[at], now):
                self._entries.put(prompt.digests[at], self._lifetimes[lifetime], now)
        return Used(
            read=prompt.end_of(hit),
            written=written.get("5m", 0),
            written_long=written.get("1h", 0),
            uncached=prompt.size - billed,
        )

    def _found(self, prompt: Prompt, mark: int, now: float) -> int:
        """Return the last piece of the longest cached prefix that a mark finds, or -1."""
        for at in range(mark, max(-1, mark - LOOKBACK - 1), -1):
            if self._entries.alive(prompt.digests[at], now):
                return at
        return -1


# OpenAI from GPT-5.6 on: caches up to breakpoints

LEAST = 1_024
"""The fewest tokens that are cached."""
MOST_WRITTEN = 4
"""Breakpoints that one request writes."""
CONSIDERED = 80
"""The latest breakpoints of a conversation, which are the only ones a request can read."""
SHORT, LONG = 1_800.0, 43_200.0
"""Lifetimes in seconds: 30 minutes and 12 hours."""


class BreakpointCache:
    """Writes up to four breakpoints a request, the last of them at its end unless the request wants only explicit ones."""

    def __init__(self, *, least: int = LEAST) -> None:
        self._least = least
        self._entries = Entries()
        self._latest: dict[str, dict[bytes, None]] = {}

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt, and cache what it writes."""
        explicit = prompt.marked(BREAKPOINT)
        implicit = [len(prompt.pieces) - 1] if prompt.implicit and prompt.pieces else []
        if not explicit and not implicit:
            return Used(uncached=prompt.size)
        considered = self._considered(prompt, sorted({*explicit, *implicit}))
        known = (at for at in range(len(prompt.pieces)) if prompt.digests[at] in considered)
        hit = max((at for at in known if self._entries.alive(prompt.digests[at], now)), default=-1)
        writing = [*explicit[len(implicit) - MOST_WRITTEN :], *implicit]
        for at in range(hit + 1):
            self._entries.touch(prompt.digests[at], now)
        for at in writing:
            if prompt.ends[at] >= self._least:
                self._entries.put(prompt.digests[at], LONG if prompt.long else SHORT, now)
        read, size = prompt.end_of(hit), prompt.end_of(max(writing))
        written = max(0, size - read) if size >= self._least else 0
        return Used(
            read=read,
            written=0 if prompt.long else written,
            written_long=written if prompt.long else 0,
            uncached=prompt.size - read - written,
        )

    def _considered(self, prompt: Prompt, breakpoints: list[int]) -> set[bytes]:
        """Return the latest breakpoints of the conversation, which now include those of this request."""
        latest = self._latest.setdefault(prompt.conversation, {})
        for at in breakpoints:
            latest.pop(prompt.digests[at], None)
            latest[prompt.digests[at]] = None
        for old in list(latest)[:-CONSIDERED]:
            del latest[old]
        return set(latest)


# Automatic caches


class SteppedCache:
    """Reads the longest prefix shared with earlier prompts, rounded down to whole steps, if it has `least` tokens.

    Every use restarts the lifetime of the prefix. With `tells_writes`, the whole steps after what was read are billed as
    written. Answers are not cached.
    """

    def __init__(
        self,
        *,
        step: int = 1,
        least: int = 0,
        lifetime: float = FOREVER,
        long: float = FOREVER,
        tells_writes: bool = False,
    ) -> None:
        self._step = step
        self._least = least
        self._lifetime = lifetime
        self._long = long
        self._tells_writes = tells_writes
        self._entries = Entries()

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt, and cache every prefix of it."""
        shared = -1
        for at in range(len(prompt.pieces)):
            if not self._entries.alive(prompt.digests[at], now):
                break
            shared = at
        read = self._whole(prompt.end_of(shared))
        written = self._whole(prompt.size) - read if self._tells_writes else 0
        for at in range(len(prompt.pieces)):
            self._entries.put(prompt.digests[at], self._long if prompt.long else self._lifetime, now)
        return Used(
            read=read,
            written=0 if prompt.long else written,
            written_long=written if prompt.long else 0,
            uncached=prompt.size - read - written,
        )

    def _whole(self, size: int) -> int:
        return size // self._step * self._step if size >= self._least else 0


class EitherCache:
    """Two caches: one for requests with marks, one for requests without; neither reads what the other wrote."""

    def __init__(self, *, marked: Cache, unmarked: Cache) -> None:
        self._marked = marked
        self._unmarked = unmarked

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt with the cache for requests with or without marks."""
        cache = self._marked if prompt.marked(*LIFETIMES) else self._unmarked
        return cache.use(prompt, now)


INTERVAL = 4_096
"""Tokens between the units that are stored inside long prompts."""
LIFETIME = 86_400.0
"""Seconds."""


class UnitCache:
    """Stores units at the end of a prompt, at the end of its answer, at intervals, and where two prompts diverge."""

    def __init__(self, *, interval: int = INTERVAL) -> None:
        self._interval = interval
        self._units = Entries()
        self._seen: set[bytes] = set()

    def use(self, prompt: Prompt, now: float) -> Used:
        """Bill a prompt, and cache the units that it and its answer leave."""
        read = 0
        for at in range(len(prompt.pieces)):
            for end in (*self._intervals(prompt, at), prompt.ends[at]):
                unit = _unit(prompt, at, end)
                if self._units.alive(unit, now):
                    self._units.touch(unit, now)
                    read = end
        parting = max(
            (at for at in range(len(prompt.pieces)) if prompt.digests[at] in self._seen), default=-1
        )
        for at in {parting, len(prompt.pieces) - 1, len(prompt.digests) - 1} - {-1}:
            self._units.put(_unit(prompt, at, prompt.ends[at]), LIFETIME, now)
        for at in range(len(prompt.digests)):
            for end in self._intervals(prompt, at):
                self._units.put(_unit(prompt, at, end), LIFETIME, now)
        self._seen.update(prompt.digests)
        return Used(read=read, uncached=prompt.size - read)

    def _intervals(self, prompt: Prompt, at: int) -> range:
        """Return the ends of the regular units that lie inside one piece."""
        step = self._interval
        return range((prompt.end_of(at - 1) // step + 1) * step, prompt.ends[at] + 1, step)


def _unit(prompt: Prompt, at: int, end: int) -> bytes:
    """Return the key of the prompt up to `end`, which lies in the piece `at`; it matches only if that whole piece does."""
    return prompt.digests[at] + end.to_bytes(8, "big")


class BlockCache:
    """Reads all full blocks that a prompt shares with an earlier prompt or its answer; a radix tree has blocks of one token.

    Blocks live until they are evicted. The last token of a prompt is always computed, even if all of it is cached.
    """

    def __init__(self, *, block: int) -> None:
        self._block = block
        self._seen: set[bytes] = set()

    def use(self, prompt: Prompt, now: float) -> Used:  # noqa: ARG002 - blocks have no lifetime
        """Bill a prompt, and cache it with its answer."""
        shared = 0
        for digest, end in zip(prompt.digests, prompt.ends[: len(prompt.pieces)], strict=False):
            if digest not in self._seen:
                break
            shared = end
        self._seen.update(prompt.digests)
        read = max(0, min(shared, prompt.size - 1)) // self._block * self._block
        return Used(read=read, uncached=prompt.size - read)


# Which provider caches how

Reports: TypeAlias = Literal["reads", "writes", "creation", "units"]
"""What the usage of a chat answer has beside the tokens read: nothing, writes, writes under Qwen's name, or hits and misses."""


class Caching(Struct, frozen=True, kw_only=True):
    """One provider's cache: how to make an empty one for a model, and what the usage of a chat answer reports."""

    name: str
    new: Callable[[str], Cache]
    reports: Reports = "reads"


_CLAUDE = re.compile(r"claude-(?P<name>[a-z]+-\d)(?:[-.](?P<minor>\d)(?!\d))?")
_CLAUDE_LEAST = {
    "opus-4.5": 4_096,
    "opus-4.6": 4_096,
    "opus-4.7": 2_048,
    "haiku-4.5": 4_096,
    "fable-5": 512,
    "fable-5.1": 512,
    "opus-5": 512,
    "opus-5.5": 512,
    "sonnet-5.5": 512,
    "haiku-5.5": 512,
}
_CLAUDE_OTHERS = 1_024


def least_of_claude(model: str) -> int:
    """Return the fewest tokens that a Claude model caches."""
    found = _CLAUDE.search(model)
    if found is None:
        return 0
    name = found["name"] + (f".{found['minor']}" if found["minor"] else "")
    return _CLAUDE_LEAST.get(name, _CLAUDE_OTHERS)


def _least_of_gemini(model: str) -> int:
    if "flash-lite" in model:
        return 0
    return 2_048 if "gemini-2.5" in model else 4_096


_ALL = (
    Caching(name="anthropic", new=lambda model: MarkedCache(least=least_of_claude(model)), reports="writes"),
    Caching(name="openai", new=lambda _: BreakpointCache(), reports="writes"),
    Caching(
        name="openai-5.5",
        new=lambda _: SteppedCache(step=128, least=1_024, lifetime=5 * MINUTE, long=DAY),
    ),
    Caching(name="gemini", new=lambda model: SteppedCache(least=_least_of_gemini(model), lifetime=DAY)),
    Caching(name="deepseek", new=lambda _: UnitCache(), reports="units"),
    Caching(
        name="kimi",
        new=lambda _: SteppedCache(step=256, lifetime=5 * MINUTE, long=HOUR, tells_writes=True),
        reports="writes",
    ),
    Caching(
        name="qwen",
        new=lambda _: EitherCache(
            marked=MarkedCache(least=1_024, lifetimes={"5m": 5 * MINUTE}),
            unmarked=SteppedCache(least=1_024),
        ),
        reports="creation",
    ),
    Caching(name="grok", new=lambda _: SteppedCache(step=128)),
    Caching(name="automatic", new=lambda _: SteppedCache()),
    Caching(name="vllm", new=lambda _: BlockCache(block=16)),
    Caching(name="sglang", new=lambda _: BlockCache(block=1)),
)
CACHINGS = {caching.name: caching for caching in _ALL}
"""By name; `automatic` caches the longest prefix without a fixed lifetime, as Mistral, GLM and MiniMax do."""
_NAMES = (
    ("vllm", r"^vllm/"),
    ("sglang", r"^sglang/"),
    ("anthropic", r"claude-"),
    ("openai", r"(^|/)gpt-(5\.[6-9]|[6-9]|\d\d)"),
    ("openai-5.5", r"(^|/)(gpt-[345]|chatgpt|codex|o[134](-|$))"),
    ("gemini", r"(^|/)gemini"),
    ("deepseek", r"(^|/)deepseek"),
    ("kimi", r"(^|/)(kimi|moonshot)"),
    ("qwen", r"(^|/)qw(en|q)"),
    ("grok", r"(^|/)grok"),
    ("automatic", r"(^|/)(mistral|codestral|glm|minimax)"),
)


def caching_of(model: str) -> Caching | None:
    """Return how the provider of a model caches, or None if the model's name does not say."""
    for name, pattern in _NAMES:
        if re.search(pattern, model):
            return CACHINGS[name]
    return None


# The caches of a provider, and caches without a provider


class Machines:
    """One machine that answers every call, and empty ones for calls that stray; models never share a cache."""

    def __init__(self, *, now: Callable[[], float] = monotonic, caching: str | None = None) -> None:
        if caching is not None and caching not in CACHINGS:
            raise ValueError(f"{caching!r} is not a cache: use one of {', '.join(sorted(CACHINGS))}")
        self._now = now
        self._fixed = CACHINGS[caching] if caching is not None else None
        self._lock = Lock()
        self._home: dict[str, Cache] = {}
        self._strays = 0

    def caching(self, model: str, otherwise: str) -> Caching:
        """Return how prompts of a model are cached; `otherwise` is for models that are not known."""
        return self._fixed or caching_of(model) or CACHINGS[otherwise]

    def use(self, prompt: Prompt, model: str, caching: Caching) -> Used:
        """Bill a prompt with the cache of the machine that it is sent to."""
        with self._lock:
            caches = self._home
            if self._strays:
                self._strays -= 1
                caches = {}
            cache = caches.setdefault(f"{caching.name} {model}", caching.new(model))
            return cache.use(prompt, self._now())

    def evict(self) -> None:
        """Forget all cached prefixes."""
        with self._lock:
            self._home = {}

    def stray(self, calls: int = 1) -> None:
        """Send each of the next `calls` to an empty machine of its own; later calls find the first machine as it was."""
        with self._lock:
            self._strays = calls


class _InstantCache:
    """Bills prompts without a server, with one cache per model and a stopped clock."""

    caching: str

    def __init__(self) -> None:
        self._machines = Machines(now=lambda: 0.0, caching=self.caching)

    def use(self, model: str, prompt: Sequence[PromptPiece], count: Count) -> Used:
        """Bill a prompt, and cache what it leaves behind."""
        caching = self._machines.caching(model, otherwise=self.caching)
        return self._machines.use(Prompt(prompt, count), model, caching)


class InstantMarkedCache(_InstantCache):
    """Anthropic's cache; models other than Claude have no minimum size."""

    caching = "anthropic"


class InstantRunningCache(_InstantCache):
    """OpenAI's cache until GPT-5.5."""

    caching = "openai-5.5"
