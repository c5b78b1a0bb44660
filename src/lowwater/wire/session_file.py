"""A whole session as a file: JSON lines that bring it back without loss, in any store."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lowwater.errors import BadInput, IllegalEntry, UnreadableJson
from lowwater.values.entries import Appended, Entry, Opened
from lowwater.values.events import Event
from lowwater.values.ledger import Ledger
from lowwater.values.message import Message
from lowwater.values.stored import About
from lowwater.values.turn_record import TurnRecord
from lowwater.wire.reading import read_fields, read_json, write_json

_FORM = 1
_MARK = "lowwater_session"

T = TypeVar("T")


class WholeSession(Struct, frozen=True, kw_only=True):
    """Everything that a store keeps of a session."""

    name: str
    about: About = About()
    entries: tuple[Entry, ...] = ()
    records: tuple[TurnRecord, ...] = ()
    events: tuple[Event, ...] = ()
    carried: bytes = b""


class _First(Struct, frozen=True, kw_only=True):
    """The first line: what follows, so that a file that was cut short is known as such."""

    lowwater_session: int
    name: str
    about: About
    entries: int
    records: int
    events: int
    carried: bytes = b""


class _Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Any other line; it has one of these."""

    entry: Entry | None = None
    record: TurnRecord | None = None
    event: Event | None = None


def session_lines(session: WholeSession) -> Iterator[bytes]:
    """Yield the lines that a session is written as, without their ends; raise BadInput if its text is no Unicode."""
    yield write_json(
        _First(
            lowwater_session=_FORM,
            name=session.name,
            about=session.about,
            entries=len(session.entries),
            records=len(session.records),
            events=len(session.events),
            carried=session.carried,
        )
    )
    for entry in session.entries:
        yield write_json(_Line(entry=_undigested(entry)))
    for record in session.records:
        yield write_json(_Line(record=record))
    for event in session.events:
        yield write_json(_Line(event=event))


def is_session_file(data: bytes) -> bool:
    """Tell whether these bytes are a whole session, by their first line."""
    try:
        return _MARK in read_fields(data.split(b"\n", 1)[0])
    except BadInput:
        return False


def read_session(data: bytes) -> WholeSession:
    """Return the session in a file, or raise a BadInput that says what is wrong with it."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
    if not lines:
        raise UnreadableJson("nothing to read: expected a whole session")
    first = _read(*lines[0], _First)
    if first.lowwater_session != _FORM:
        raise BadInput(
            f"the session is written in form {first.lowwater_session} and this Lowwater reads form {_FORM}: update it"
        )
    entries: list[Entry] = []
    records: list[TurnRecord] = []
    events: list[Event] = []
    for number, line in lines[1:]:
        said = _read(number, line, _Line)
        if said.entry is not None:
            entries.append(_undigested(said.entry))
        elif said.record is not None:
            records.append(said.record)
        elif said.event is not None:
            events.append(said.event)
        else:
            raise BadInput(f"line {number} has neither an entry, a record nor an event")
    _check_whole(first, entries, records, events)
    return WholeSession(
        name=first.name,
        about=first.about,
        entries=tuple(entries),
        records=tuple(records),
        events=tuple(events),
        carried=first.carried,
    )


def _read(number: int, line: bytes, kind: type[T]) -> T:
    try:
        return read_json(line, kind)
    except BadInput as error:
        raise type(error)(f"line {number}: {error}") from None


def _check_whole(
    first: _First, entries: Sequence[Entry], records: Sequence[TurnRecord], events: Sequence[Event]
) -> None:
    told = (first.entries, first.records, first.events)
    found = (len(entries), len(records), len(events))
    if told != found:
        raise BadInput(
            "the session is not whole: its first line tells of {} entries, {} records and {} events, there are {}, {} and {}".format(
                *told, *found
            )
        )
    if entries and not isinstance(entries[0], Opened):
        raise BadInput("the session does not begin with its opening")
    try:
        Ledger().extend(entries)
    except IllegalEntry as error:
        raise BadInput(f"the session's entries do not fit together: {error}") from None


def _undigested(entry: Entry) -> Entry:
    """Return the entry without digests in its messages: they are not written, and a file's are not believed."""
    if not isinstance(entry, Appended) or not any(message.memo for message in entry.messages):
        return entry
    return replace(entry, messages=tuple(map(_without_memo, entry.messages)))


def _without_memo(message: Message) -> Message:
    return replace(message, memo=b"") if message.memo else message
