"""Reads sessions that Lowwater exported itself (`lowwater sessions export --whole`).

The lines are the ledger's entries, then the records of its turns, then its events. A compaction by Lowwater counts as native,
because Lowwater is the agent that recorded the session.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.entries import Appended, Compacted, Entry, ModelChanged, Opened, PreambleChanged
from lowwater.core.events import TurnRecord
from lowwater.core.stored import About
from lowwater.logs.files import RecordedFile, first_objects
from lowwater.logs.recording import NativeCompaction, RecordedCall, RecordedMessage, Recording
from lowwater.logs.recording_builder import model_of_most

_MARK = "lowwater_session"


class _First(Struct):
    name: str
    about: About = About()


class _Line(Struct):
    entry: Entry | None = None
    record: TurnRecord | None = None


class OwnExports:
    """Reads one whole session per file."""

    name = "lowwater"
    order = 60

    def recognises(self, head: bytes, path: Path) -> bool:  # noqa: ARG002  # the content is enough
        """Return whether the first line has the mark."""
        return any(_MARK in fields for fields in first_objects(head)[:1])

    def read(self, file: RecordedFile) -> Iterator[Recording]:
        """Yield the session, without lines that are missing or broken."""
        lines = file.lines()
        read = (file.read(line.data, _First, line.number) for line in lines)
        first = next((found for found in read if found is not None), None)
        if first is None:
            return
        gathered = _Gathered()
        for line in lines:
            told = file.read(line.data, _Line, line.number)
            if told is not None:
                gathered.take(told)
        yield gathered.recording(first, path=str(file.path))


class _Gathered:
    """The session so far."""

    def __init__(self) -> None:
        self._messages: list[RecordedMessage] = []
        self._answers: defaultdict[float, deque[int]] = defaultdict(deque)
        self._compactions: list[NativeCompaction] = []
        self._preamble = PreambleChanged(at=0.0)
        self._opened_at: float | None = None
        self._model = ""

    def take(self, told: _Line) -> None:
        """Add one line."""
        match told.entry:
            case Appended() as entry:
                self._append(entry)
            case Compacted(at=at):
                self._compactions.append(NativeCompaction(index=len(self._messages), at=at))
            case PreambleChanged() as entry if not self._preamble.system and not self._preamble.tools:
                self._preamble = entry
            case Opened(at=at, model=model):
                self._opened_at, self._model = at, model
            case ModelChanged(model=model):
                self._model = model
            case _:
                pass
        if told.record is not None:
            self._bill(told.record)

    def recording(self, first: _First, *, path: str) -> Recording:
        """Return the session as a recording."""
        return Recording(
            id=first.name,
            agent="lowwater",
            path=path,
            messages=tuple(self._messages),
            model=model_of_most(self._messages) or self._model,
            parent=first.about.parent,
            relation="fork" if first.about.parent else "",
            started_at=self._opened_at,
            system=self._preamble.system,
            tools=self._preamble.tools,
            compactions=tuple(self._compactions),
        )

    def _append(self, entry: Appended) -> None:
        for message in entry.messages:
            call = RecordedCall(model=self._model) if message.role == "assistant" else None
            if call is not None:
                self._answers[entry.at].append(len(self._messages))
            # A digest from a file is not trusted.
            self._messages.append(RecordedMessage(message=replace(message, memo=b""), at=entry.at, call=call))

    def _bill(self, record: TurnRecord) -> None:
        """Give a turn's usage to the answer that was appended at the same time."""
        waiting = self._answers.get(record.at)
        if not waiting:
            return
        index = waiting.popleft()
        call = RecordedCall(model=record.model, usage=record.usage)
        self._messages[index] = replace(self._messages[index], call=call)


FORMATS = (OwnExports(),)
