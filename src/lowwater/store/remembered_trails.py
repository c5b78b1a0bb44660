"""The lists that clients keep, as digests, as the store in memory has them."""

import secrets
from collections.abc import Sequence

from msgspec.structs import replace

from lowwater.core.stored import Followed, Trail


class RememberedTrails:
    """All trails of one store; not safe to use from several threads at once."""

    def __init__(self) -> None:
        self.secret = secrets.token_bytes(32)
        self._known: dict[tuple[str, bytes], dict[str, Followed]] = {}
        self._of: dict[str, list[tuple[str, bytes]]] = {}

    def leave(self, trail: Trail) -> None:
        """Note what a session was seen with."""
        places = self._of.setdefault(trail.session, [])
        for place in places:
            self._known[place][trail.session] = replace(self._known[place][trail.session], newest=False)
        for key in trail.keys:
            place = (trail.tenant, key)
            if place not in places:
                places.append(place)
            self._known.setdefault(place, {})[trail.session] = Followed(
                key=key, session=trail.session, hint=trail.hint, newest=True
            )

    def follow(self, tenant: str, keys: Sequence[bytes]) -> list[Followed]:
        """Return the sessions that were seen with one of these keys."""
        return [followed for key in keys for followed in self._known.get((tenant, key), {}).values()]

    def forget(self, session: str) -> None:
        """Lose every trail of a session."""
        for place in self._of.pop(session, ()):
            del self._known[place][session]
            if not self._known[place]:
                del self._known[place]
