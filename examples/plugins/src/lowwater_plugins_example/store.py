"""`jsonl:///FOLDER`: sessions as a file of JSON lines that `jq` can read; what happened to the store is replayed in memory."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from lowwater import Store, open_store
from lowwater.plugins import (
    About,
    Account,
    Append,
    BadSetting,
    Conceal,
    Entry,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Listed,
    Numbered,
    Outline,
    Stored,
    UnusableStore,
)
from lowwater_plugins_example.journal import Added, Copied, Drawn, Journal, Left, encoded
from lowwater_plugins_example.replaying import replay, without

SCHEME = "jsonl:///"


def open_folder(address: str, *, conceal: Conceal) -> Store:
    """Return the store at `jsonl:///FOLDER`, or raise BadSetting; one more slash makes the folder absolute, as with SQLite."""
    if not address.startswith(SCHEME) or address == SCHEME:
        raise BadSetting("a folder of JSON lines is named by jsonl:///FOLDER")
    return JsonLinesStore(Path(address.removeprefix(SCHEME)).expanduser(), conceal=conceal)


class JsonLinesStore:
    """Keeps sessions in a folder, for any number of processes on one machine; every one of them holds all of it in memory."""

    def __init__(self, folder: Path, *, conceal: Conceal) -> None:
        self._conceal = conceal
        self._mutex = Lock()
        self._is_closed = False
        self._journal = Journal(folder)
        self._memory = open_store("memory:", conceal=conceal)
        self._secret = b""

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Keep what is new, or raise StaleLedger."""
        line = Added(session=session, new=new)
        encoded(line)  # what cannot be written is refused before anything is done
        with self._current() as memory:
            version = memory.append(session, expected, new)
            if version != expected:
                self._journal.write(line)
            return version

    def read(self, session: str, /, *, since: int = 0, until: int | None = None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        with self._current() as memory:
            return memory.read(session, since=since, until=until)

    def outline(self, session: str, /) -> Outline:
        """Return the session without its entries."""
        with self._current() as memory:
            return memory.outline(session)

    def entries(self, session: str, first: int, end: int, /, *, version: int) -> list[Entry]:
        """Return the entries at these positions."""
        with self._current() as memory:
            return memory.entries(session, first, end, version=version)

    def messages(self, session: str, first: int, end: int, /, *, version: int) -> list[Numbered]:
        """Return the messages with these numbers."""
        with self._current() as memory:
            return memory.messages(session, first, end, version=version)

    def copy(self, session: str, to: str, about: About, /) -> int:
        """Begin another session with the ledger of this one."""
        line = Copied(session=session, to=to, about=about)
        encoded(line)
        with self._current() as memory:
            version = memory.copy(session, to, about)
            self._journal.write(line)
            return version

    def delete(self, session: str, /, *others: str) -> bool:
        """Forget sessions: the file is written anew without them."""
        with self._current() as memory:
            if not memory.delete(session, *others):
                return False
            self._journal.rewrite(without(self._journal.lines(), {session, *others}))
            return True

    def sessions(self) -> list[Listed]:
        """Return all sessions, the one changed last first."""
        with self._current() as memory:
            return memory.sessions()

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return what these sessions, or all, did and cost."""
        with self._current() as memory:
            return memory.accounts(sessions)

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best."""
        with self._current() as memory:
            return memory.search(words, session=session, limit=limit)

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Note what a session was seen with."""
        with self._current() as memory:
            if memory.outline(fingerprint.session).version:
                self._journal.write(Left(fingerprint=fingerprint))
                memory.record_fingerprint(fingerprint)

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions that were seen with one of these keys."""
        with self._current() as memory:
            return memory.lookup_fingerprints(tenant, keys)

    def secret(self) -> bytes:
        """Return the bytes that were drawn when the store was made."""
        with self._current():
            return self._secret

    def close(self) -> None:
        """Let go of the folder."""
        with self._mutex:
            if not self._is_closed:
                self._journal.close()
            self._is_closed = True

    @contextmanager
    def _current(self) -> Iterator[Store]:
        """Hand out the sessions as the folder has them now, while nobody else may use it."""
        with self._mutex:
            if self._is_closed:
                raise UnusableStore("the store was closed: open another")
            with self._journal.locked():
                self._catch_up()
                yield self._memory

    def _catch_up(self) -> None:
        if self._journal.is_another():
            self._memory = open_store("memory:", conceal=self._conceal)
        news = self._journal.news()
        replay(self._memory, news)
        if news and isinstance(news[0], Drawn):
            self._secret = news[0].secret
        elif not self._secret:
            self._secret = secrets.token_bytes(32)
            self._journal.write(Drawn(secret=self._secret))
