"""The store in memory, which ends with its process: `memory:`."""

import secrets
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import islice
from threading import Lock

from msgspec.structs import replace

from lowwater.core.entries import Appended, Entry, ModelChanged, Opened
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Numbered
from lowwater.core.stored import (
    About,
    Account,
    Append,
    Fingerprint,
    FingerprintMatch,
    Hit,
    Landmark,
    Listed,
    Outline,
    Stored,
)
from lowwater.errors import BadInput, StaleLedger, UnusableStore
from lowwater.stores.serialization import appended_messages, entry_kind
from lowwater.stores.shared import (
    Conceal,
    conceal_nothing,
    landmark,
    searchable_text,
)


class MemoryFingerprints:
    """All fingerprints of one store; not safe to use from several threads at once."""

    def __init__(self) -> None:
        self.secret = secrets.token_bytes(32)
        self._known: dict[tuple[str, bytes], dict[str, FingerprintMatch]] = {}
        self._places: dict[str, list[tuple[str, bytes]]] = {}

    def record_fingerprint(self, fingerprint: Fingerprint) -> None:
        """Record the digests a session was last seen with."""
        places = self._places.setdefault(fingerprint.session, [])
        for place in places:
            self._known[place][fingerprint.session] = replace(
                self._known[place][fingerprint.session], newest=False
            )
        for key in fingerprint.keys:
            place = (fingerprint.tenant, key)
            if place not in places:
                places.append(place)
            self._known.setdefault(place, {})[fingerprint.session] = FingerprintMatch(
                key=key, session=fingerprint.session, hint=fingerprint.hint, newest=True
            )

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes]) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        return [match for key in keys for match in self._known.get((tenant, key), {}).values()]

    def forget(self, session: str) -> None:
        """Drop every fingerprint of a session."""
        for place in self._places.pop(session, ()):
            del self._known[place][session]
            if not self._known[place]:
                del self._known[place]


class MemorySession:
    """One session: its entries and totals, its accounts, its carried state and its description."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.messages: list[Numbered] = []
        self._versions: list[int] = []
        self._lengths: list[int] = []
        """How many entries there were at each version."""
        self._landmarks: list[Landmark] = []
        self._records: list[TurnRecord] = []
        self._events: list[Event] = []
        self._turns_before: list[int] = []
        """How many records there were before each event."""
        self._times: list[float] = []
        """The first and the last time of anything in it."""
        self._tokens = 0
        self._model = ""
        self._carried = b""
        self._about = About()

    @property
    def version(self) -> int:
        """The newest version."""
        return self._versions[-1] if self._versions else 0

    def had(self, version: int) -> bool:
        """Return whether the session ever had this version."""
        index = bisect_right(self._versions, version)
        return index > 0 and self._versions[index - 1] == version

    def add(self, version: int, new: Append) -> None:
        """Add one append, or raise IllegalEntry and change nothing."""
        # Checked for all entries first, so that nothing is changed if one is illegal.
        new_messages = [appended_messages(entry) for entry in new.entries]
        for entry, messages in zip(new.entries, new_messages, strict=True):
            self._add_entry(entry, messages)
        self._turns_before += [len(self._records)] * len(new.events)
        self._records += [new.record] if new.record is not None else []
        self._events += new.events
        happened = [*new.entries, *new.events, *([new.record] if new.record is not None else [])]
        self._span([one.at for one in happened])
        self._carried = self._carried if new.carried is None else new.carried
        self._about = self._about if new.about is None else new.about
        self._versions.append(version)
        self._lengths.append(len(self.entries))

    def copied(self, version: int, about: About) -> "MemorySession":
        """Return a separate session with the same ledger, all of it at one version."""
        other = MemorySession()
        other.entries, other.messages = copy(self.entries), copy(self.messages)
        other._landmarks, other._tokens = copy(self._landmarks), self._tokens
        other._versions, other._lengths = [version], [len(self.entries)]
        other._model, other._carried, other._about = self._model, self._carried, about
        other._span([entry.at for entry in self.entries])
        return other

    def read(self, since: int, until: int | None) -> Stored:
        """Return what was appended after `since` and not after `until`."""
        first, end = self._at(since), self._at(self.version if until is None else until)
        return Stored(
            version=self._versions[end - 1] if end else 0,
            entries=tuple(self.entries[self._length(first) : self._length(end)]),
            carried=self._carried,
            about=self._about,
        )

    def outline(self) -> Outline:
        """Return the session without its entries."""
        return Outline(
            version=self.version,
            entries=len(self.entries),
            messages=len(self.messages),
            tokens=self._tokens,
            landmarks=tuple(self._landmarks),
            carried=self._carried,
            about=self._about,
        )

    def listed(self, name: str) -> Listed:
        """Return the session as `sessions` lists it."""
        return Listed(
            name=name,
            version=self.version,
            entries=len(self.entries),
            messages=len(self.messages),
            turns=len(self._records),
            compactions=sum(landmark.kind == "compacted" for landmark in self._landmarks),
            model=self._model,
            opened_at=self._times[0] if self._times else 0.0,
            changed_at=self._times[-1] if self._times else 0.0,
            about=self._about,
        )

    def account(self, name: str) -> Account:
        """Return its turn records and events."""
        return Account(
            session=self.listed(name),
            records=tuple(self._records),
            events=tuple(self._events),
            turns_before=tuple(self._turns_before),
        )

    def _add_entry(self, entry: Entry, messages: list[Numbered]) -> None:
        if not isinstance(entry, Appended):
            before = (len(self.messages), self._tokens)
            self._landmarks.append(landmark(len(self.entries), entry_kind(entry), entry.at, *before))
        if isinstance(entry, Opened | ModelChanged):
            self._model = entry.model
        self.entries.append(entry)
        self.messages += messages
        self._tokens += sum(message.tokens for message in messages)

    def _span(self, times: list[float]) -> None:
        together = self._times + times
        self._times = [min(together), max(together)] if together else []

    def _at(self, version: int) -> int:
        """Return how many of its versions are not later than this one."""
        return bisect_right(self._versions, version)

    def _length(self, versions: int) -> int:
        return self._lengths[versions - 1] if versions else 0


class MemoryStore:
    """Keeps sessions in this process only."""

    def __init__(self, *, conceal: Conceal = conceal_nothing) -> None:
        self._conceal = conceal
        self._lock = Lock()
        self._sessions: dict[str, MemorySession] = {}
        self._fingerprints = MemoryFingerprints()
        self._newest = 0
        self._is_closed = False

    def append(self, session: str, expected: int, new: Append, /) -> int:
        """Store an append, or raise StaleLedger."""
        with self._open():
            now = self._sessions.get(session)
            found = now.version if now else 0
            if found != expected:
                raise StaleLedger(session, expected=expected, found=found)
            if new == Append():
                return found
            now = now or MemorySession()
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
        """Create the session `to` with the ledger of this one."""
        with self._open():
            if to in self._sessions:
                raise StaleLedger(to, expected=0, found=self._sessions[to].version)
            if session not in self._sessions:
                raise BadInput(f"there is no session {session!r} to copy")
            self._newest += 1
            self._sessions[to] = self._sessions[session].copied(self._newest, about)
            return self._newest

    def delete(self, session: str, /, *others: str) -> bool:
        """Delete sessions; return whether any of them existed."""
        with self._open():
            return sum(self._forget(name) for name in (session, *others)) > 0

    def _forget(self, session: str) -> bool:
        self._fingerprints.forget(session)
        return self._sessions.pop(session, None) is not None

    def sessions(self) -> list[Listed]:
        """Return all sessions, most recently changed first."""
        with self._open():
            return [self._sessions[name].listed(name) for name in self._names()]

    def accounts(self, sessions: Sequence[str] | None = None, /) -> list[Account]:
        """Return the turn records and events of these sessions, or of all."""
        wanted = None if sessions is None else set(sessions)
        with self._open():
            return [
                self._sessions[name].account(name)
                for name in self._names()
                if wanted is None or name in wanted
            ]

    def search(self, words: str, /, *, session: str | None = None, limit: int = 5) -> list[Hit]:
        """Return the messages that match best."""
        from lowwater.core.recall.index_terms import folded_terms, read_question  # noqa: PLC0415 - for those who search
        from lowwater.core.recall.ranking import SearchedText, rank_texts  # noqa: PLC0415 - likewise

        question = read_question(words)
        if not question.terms or limit <= 0:
            return []
        with self._open():
            searched = {
                one.version: (name, list(one.messages))
                for name, one in self._sessions.items()
                if session is None or name == session
            }
        texts = (
            SearchedText(
                place=(version, number),
                tokens=numbered.tokens,
                terms=folded_terms(searchable_text(numbered.message, self._conceal)),
            )
            for version, (_, messages) in searched.items()
            for number, numbered in enumerate(messages, start=1)
        )
        ranked = rank_texts(question, texts, limit)
        hits = (
            Hit(session=name, number=number, tokens=messages[number - 1].tokens, score=score)
            for (version, number), score in ranked
            for name, messages in [searched[version]]
            if 1 <= number <= len(messages)
        )
        return list(islice(hits, limit))

    def record_fingerprint(self, fingerprint: Fingerprint, /) -> None:
        """Record the digests a session was last seen with."""
        with self._open():
            if fingerprint.session in self._sessions:
                self._fingerprints.record_fingerprint(fingerprint)

    def lookup_fingerprints(self, tenant: str, keys: Sequence[bytes], /) -> list[FingerprintMatch]:
        """Return the sessions that were once seen with one of these digests."""
        with self._open():
            return self._fingerprints.lookup_fingerprints(tenant, keys)

    def secret(self) -> bytes:
        """Return the random bytes that were drawn when the store was made."""
        with self._open():
            return self._fingerprints.secret

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
    def _seen(self, session: str, version: int) -> Iterator[MemorySession]:
        """Hand out a session that had this version, an empty one for 0, or raise StaleLedger."""
        with self._open():
            now = self._sessions.get(session, MemorySession())
            if version and not now.had(version):
                raise StaleLedger(session, expected=version, found=now.version)
            yield now
