"""One session as the store in memory has it: it only grows."""

from bisect import bisect_right
from copy import copy

from lowwater.core.entries import Appended, Entry, ModelChanged, Opened
from lowwater.core.events import Event, TurnRecord
from lowwater.core.ledger import Numbered
from lowwater.core.stored import About, Account, Append, Landmark, Listed, Outline, Stored
from lowwater.store.packing import kind_of, messages_in
from lowwater.store.restoring import landmark


class Remembered:
    """A session's entries, what they add up to, and what it has besides."""

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
        """For each event how many records there were."""
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
        """Whether this was once its newest version."""
        index = bisect_right(self._versions, version)
        return index > 0 and self._versions[index - 1] == version

    def add(self, version: int, new: Append) -> None:
        """Take in one append, or raise IllegalEntry and stay as it is."""
        brought = [messages_in(entry) for entry in new.entries]
        for entry, messages in zip(new.entries, brought, strict=True):
            self._take(entry, messages)
        self._turns_before += [len(self._records)] * len(new.events)
        self._records += [new.record] if new.record is not None else []
        self._events += new.events
        happened = [*new.entries, *new.events, *([new.record] if new.record is not None else [])]
        self._span([one.at for one in happened])
        self._carried = self._carried if new.carried is None else new.carried
        self._about = self._about if new.about is None else new.about
        self._versions.append(version)
        self._lengths.append(len(self.entries))

    def copied(self, version: int, about: About) -> "Remembered":
        """Return a session of its own with the same ledger, all of it at one version."""
        other = Remembered()
        other.entries, other.messages = copy(self.entries), copy(self.messages)
        other._landmarks, other._tokens = copy(self._landmarks), self._tokens
        other._versions, other._lengths = [version], [len(self.entries)]
        other._model, other._carried, other._about = self._model, self._carried, about
        other._span([entry.at for entry in self.entries])
        return other

    def read(self, since: int, until: int | None) -> Stored:
        """Return what came after one version and not after the other."""
        first, end = self._at(since), self._at(self.version if until is None else until)
        return Stored(
            version=self._versions[end - 1] if end else 0,
            entries=tuple(self.entries[self._length(first) : self._length(end)]),
            carried=self._carried,
            about=self._about,
        )

    def outline(self) -> Outline:
        """Return it without its entries."""
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
        """Return it as a list shows it."""
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
        """Return what it did and cost."""
        return Account(
            session=self.listed(name),
            records=tuple(self._records),
            events=tuple(self._events),
            turns_before=tuple(self._turns_before),
        )

    def _take(self, entry: Entry, messages: list[Numbered]) -> None:
        if not isinstance(entry, Appended):
            before = (len(self.messages), self._tokens)
            self._landmarks.append(landmark(len(self.entries), kind_of(entry), entry.at, *before))
        if isinstance(entry, Opened | ModelChanged):
            self._model = entry.model
        self.entries.append(entry)
        self.messages += messages
        self._tokens += sum(message.tokens for message in messages)

    def _span(self, times: list[float]) -> None:
        together = self._times + times
        self._times = [min(together), max(together)] if together else []

    def _at(self, version: int) -> int:
        """Return how many of its versions are not after this one."""
        return bisect_right(self._versions, version)

    def _length(self, versions: int) -> int:
        return self._lengths[versions - 1] if versions else 0
