"""The store that forgets with its process: `memory:`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from lowwater.core.entries import Entry
from lowwater.core.ledger import Numbered
from lowwater.core.stored import About, Account, Append, Followed, Hit, Listed, Outline, Stored, Trail
from lowwater.errors import BadInput, StaleLedger, UnusableStore
from lowwater.store.indexing import Conceal, as_it_is, folded_terms, phrases_in, words_of
from lowwater.store.ranking import rank
from lowwater.store.remembered import Remembered
from lowwater.store.remembered_trails import RememberedTrails


class MemoryStore:
    """Keeps sessions in this process only."""

    def __init__(self, *, conceal: Conceal = as_it_is) -> None:
        self._conceal = conceal
        self._lock = Lock()
        self._sessions: dict[str, Remembered] = {}
        self._trails = RememberedTrails()
        self._newest = 0
        self._is_closed = False

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Keep what is new, or raise StaleLedger."""
        with self._open():
            now = self._sessions.get(session)
            found = now.version if now else 0
            if found != expected:
                raise StaleLedger(session, expected=expected, found=found)
            if new == Append():
                return found
            now = now or Remembered()
            now.add(self._newest + 1, new)
            self._sessions[session] = now
            self._newest += 1
            return self._newest

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        with self._seen(session, since) as now:
            return now.read(since, until)

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries."""
        with self._seen(session, 0) as now:
            return now.outline()

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at these positions."""
        with self._seen(session, version) as now:
            return now.entries[max(first, 0) : max(end, 0)]

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with these numbers."""
        with self._seen(session, version) as now:
            return now.messages[max(first - 1, 0) : max(end - 1, 0)]

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Begin another session with the ledger of this one."""
        with self._open():
            if to in self._sessions:
                raise StaleLedger(to, expected=0, found=self._sessions[to].version)
            if session not in self._sessions:
                raise BadInput(f"there is no session {session!r} to copy")
            self._newest += 1
            self._sessions[to] = self._sessions[session].copied(self._newest, about)
            return self._newest

    def delete(self, session: str, /, *others: str) -> bool:
        """Forget sessions; return whether there was one of them."""
        with self._open():
            return sum(self._forget(name) for name in (session, *others)) > 0

    def _forget(self, session: str) -> bool:
        self._trails.forget(session)
        return self._sessions.pop(session, None) is not None

    def sessions(self) -> list[Listed]:
        """Return all sessions, the one changed last first."""
        with self._open():
            return [self._sessions[name].listed(name) for name in self._names()]

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return what these sessions, or all, did and cost."""
        wanted = None if sessions is None else set(sessions)
        with self._open():
            return [
                self._sessions[name].account(name)
                for name in self._names()
                if wanted is None or name in wanted
            ]

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best."""
        with self._open():
            all_messages = [
                (name, number, numbered)
                for name in self._names()
                for number, numbered in reversed(list(enumerate(self._sessions[name].messages, start=1)))
            ]
        texts = [folded_terms(words_of(numbered.message, self._conceal)) for *_, numbered in all_messages]
        scores = rank([folded_terms(phrase) for phrase in phrases_in(words)], texts)
        # Newest first already, and sorting leaves equals as they are.
        best = sorted(scores, key=lambda index: -scores[index])
        hits = (
            Hit(session=name, number=number, tokens=numbered.tokens, score=scores[index])
            for index in best
            for name, number, numbered in [all_messages[index]]
            if session is None or name == session
        )
        return [hit for hit, _ in zip(hits, range(limit), strict=False)]

    def leave(self, trail: Trail, /) -> None:
        """Note what a session was seen with."""
        with self._open():
            if trail.session in self._sessions:
                self._trails.leave(trail)

    def follow(self, tenant: str, keys: Sequence[bytes], /) -> list[Followed]:
        """Return the sessions that were seen with one of these keys."""
        with self._open():
            return self._trails.follow(tenant, keys)

    def secret(self) -> bytes:
        """Return the bytes that were drawn when the store was made."""
        with self._open():
            return self._trails.secret

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._is_closed = True
            self._sessions.clear()

    def _names(self) -> list[str]:
        return sorted(self._sessions, key=lambda name: -self._sessions[name].version)

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise UnusableStore("the store was closed: open another")
            yield

    @contextmanager
    def _seen(self, session: str, version: int) -> Iterator[Remembered]:
        """Hand out a session that had this version, an empty one for 0, or raise StaleLedger."""
        with self._open():
            now = self._sessions.get(session, Remembered())
            if version and not now.had(version):
                raise StaleLedger(session, expected=version, found=now.version)
            yield now
