"""Which Lowwater session a call belongs to, and that it goes on with the model that is asked."""

from lowwater.wiring.library import Lowwater
from lowwater.wiring.session import Session


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
