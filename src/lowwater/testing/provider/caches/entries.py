"""What a cache holds: prefixes by what identifies them, each with the time it was last used."""

from msgspec import Struct

FOREVER = float("inf")


class _Entry(Struct, kw_only=True):
    used: float
    lifetime: float


class Entries:
    """Prefixes that die when nobody has used them for the length of their lifetime."""

    def __init__(self) -> None:
        self._held: dict[bytes, _Entry] = {}

    def alive(self, prefix: bytes, now: float) -> bool:
        """Return whether a prefix is held and has not outlived its lifetime."""
        entry = self._held.get(prefix)
        return entry is not None and now - entry.used <= entry.lifetime

    def touch(self, prefix: bytes, now: float) -> None:
        """Let the lifetime of a prefix begin anew, if it is alive."""
        if self.alive(prefix, now):
            self._held[prefix].used = now

    def put(self, prefix: bytes, lifetime: float, now: float) -> None:
        """Hold a prefix from now on; one that is alive keeps the longer of both lifetimes."""
        if self.alive(prefix, now):
            lifetime = max(lifetime, self._held[prefix].lifetime)
        self._held[prefix] = _Entry(used=now, lifetime=lifetime)
