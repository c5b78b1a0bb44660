"""Sessions without secrets, for whoever gets a file of one."""

from msgspec import Struct
from msgspec.structs import replace

from lowwater.values.entries import (
    Altered,
    Appended,
    Compacted,
    Edit,
    Entry,
    PreambleChanged,
    Stand,
    Summarized,
)
from lowwater.values.events import Compaction, Event, Rejected, Skip
from lowwater.values.message import Message
from lowwater.values.secrets import conceal, conceal_message, conceal_parts
from lowwater.values.secrets.messages import conceal_json
from lowwater.wire.reading import write_json
from lowwater.wire.session_file import WholeSession


class Concealed(Struct, frozen=True, kw_only=True):
    """A session without secrets, and how many of its entries and events had some."""

    session: WholeSession
    changed: int


def conceal_session(session: WholeSession) -> Concealed:
    """Return the session without secrets anywhere a person or a tool wrote; the same session if it has none.

    What is carried beside the ledger is left out as soon as there is a secret, for it may quote messages.
    """
    entries = tuple(map(_entry, session.entries))
    events = tuple(map(_event, session.events))
    title = conceal(session.about.title)
    changed = sum(
        new is not old
        for new, old in zip((*entries, *events), (*session.entries, *session.events), strict=True)
    ) + (title != session.about.title)
    if not changed:
        return Concealed(session=session, changed=0)
    about = replace(session.about, title=title)
    return Concealed(
        session=replace(session, about=about, entries=entries, events=events, carried=b""), changed=changed
    )


def _entry(entry: Entry) -> Entry:
    match entry:
        case Appended():
            new: Entry = replace(entry, messages=tuple(map(conceal_message, entry.messages)))
        case PreambleChanged():
            new = replace(entry, system=_json(entry.system), tools=_json(entry.tools))
        case Compacted():
            new = replace(entry, stands=tuple(map(_stand, entry.stands)))
        case _:
            return entry
    return entry if _is_same(new, entry) else new


def _is_same(new: Entry, old: Entry) -> bool:
    # Equal messages and parts may differ in the fields around their content, where a secret may stand too.
    if isinstance(new, Appended) and isinstance(old, Appended):
        return all(a is b for a, b in zip(new.messages, old.messages, strict=True))
    return write_json(new) == write_json(old)


def _stand(stand: Stand) -> Stand:
    match stand:
        case Summarized():
            text = conceal(stand.text)
            # A signed block cannot be changed: where it tells a secret, only its words go on.
            return replace(stand, text=text, block=stand.block if text == stand.text else b"")
        case Altered():
            return replace(stand, edits=tuple(map(_edit, stand.edits)))
        case _:
            return stand


def _edit(edit: Edit) -> Edit:
    if edit.by is None:
        return edit
    shown = conceal_parts(Message(role="user", parts=(edit.by,)))
    return replace(edit, by=shown.parts[0])


def _event(event: Event) -> Event:
    rejected = tuple(map(_rejected, event.rejected))
    if rejected == event.rejected:
        return event
    match event:
        case Compaction():
            return replace(event, rejected=rejected)
        case Skip():
            return replace(event, rejected=rejected)


def _rejected(rejected: Rejected) -> Rejected:
    return replace(rejected, first_missing=tuple(map(conceal, rejected.first_missing)))


def _json(body: bytes) -> bytes:
    return conceal_json(body.decode()).encode() if body else body
