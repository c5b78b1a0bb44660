"""Which machine answers, and what its caches hold: the place where a cache can go wrong on purpose."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from lowwater.testing.provider.caches.cache import Cache, Used
from lowwater.testing.provider.caches.choice import CACHINGS, Caching, caching_of
from lowwater.testing.provider.prompt import Prompt


class Machines:
    """One machine that answers every call, until a call is told to go elsewhere; models never share a cache."""

    def __init__(self, *, now: Callable[[], float] = monotonic, caching: str | None = None) -> None:
        if caching is not None and caching not in CACHINGS:
            raise ValueError(f"{caching!r} is no cache: name one of {', '.join(sorted(CACHINGS))}")
        self._now = now
        self._fixed = CACHINGS[caching] if caching is not None else None
        self._lock = Lock()
        self._home: dict[str, Cache] = {}
        self._strays = 0

    def caching(self, model: str, otherwise: str) -> Caching:
        """Return how prompts of a model are cached; `otherwise` is for models that nothing is known of."""
        return self._fixed or caching_of(model) or CACHINGS[otherwise]

    def use(self, prompt: Prompt, model: str, caching: Caching) -> Used:
        """Bill a prompt on the machine that it goes to."""
        with self._lock:
            caches = self._home
            if self._strays:
                self._strays -= 1
                caches = {}
            cache = caches.setdefault(f"{caching.name} {model}", caching.new(model))
            return cache.use(prompt, self._now())

    def evict(self) -> None:
        """Forget everything."""
        with self._lock:
            self._home = {}

    def stray(self, calls: int = 1) -> None:
        """Send each of the next calls to an empty machine of its own; those behind them find the old one as it was."""
        with self._lock:
            self._strays = calls
