"""Which Lowwater session a call belongs to, and that it goes on with the model that is asked."""

from collections import OrderedDict
from typing import Generic, TypeVar

from lowwater.session.library import Lowwater
from lowwater.session.session import Session

K = TypeVar("K")
V = TypeVar("V")


class Newest(Generic[K, V]):
    """Values by their keys, but only the `most` that were set or asked for last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def __setitem__(self, key: K, value: V) -> None:
        self._held[key] = value
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)

    def get(self, key: K) -> V | None:
        """Return the value of a key, which is among the newest again; None if there is none."""
        if key in self._held:
            self._held.move_to_end(key)
        return self._held.get(key)

    def pop(self, key: K) -> V | None:
        """Return the value of a key, and forget it; None if there is none."""
        return self._held.pop(key, None)


class Sessions:
    """The sessions of one library that a framework's conversations are kept in.

    The first model that the framework asks is the library's own, however the framework spells its name; when it asks
    another one, the session switches with it, and back.
    """

    def __init__(self, lowwater: Lowwater, *, source: str) -> None:
        self.lowwater = lowwater
        self._source = source
        self._models: dict[str, str] = {}

    def named(self, name: str) -> Session:
        """Return the session with this name; it is told once where its messages come from."""
        session = self.lowwater.session(name)
        if session.about.source != self._source:
            session.describe(source=self._source)
        return session

    def asking(self, name: str, model: str) -> Session:
        """Return the session for a call of this model; an empty name of a model tells nothing."""
        session = self.named(name)
        if model:
            known = self._models.setdefault(model, model if self._models else session.route.model)
            if session.route.model != known:
                session.use(known)
        return session
