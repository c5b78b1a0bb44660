"""Making a kept session of what a file holds."""

from pathlib import Path

from msgspec import Raw, Struct
from msgspec.structs import replace

from lowwater.adapters.files import read_file
from lowwater.cli.conversations import DEFAULT_MODEL, recorded_in
from lowwater.cli.kept_words import on_one_line
from lowwater.core.entries import Appended, ModelChanged, Opened
from lowwater.core.formats.files import (
    Conversation,
    WholeSession,
    decode_conversation,
    is_session_file,
    read_session,
)
from lowwater.core.stored import Append
from lowwater.errors import BadInput, UnknownFormat
from lowwater.protocols import Store
from lowwater.session.library import Lowwater

SOURCE = "import"
"""Where sessions that were conversations in files come from."""

_ENDINGS = frozenset({".gz", ".json", ".jsonl", ".ndjson"})


class Wish(Struct, frozen=True, kw_only=True):
    """What was said on the command line about the sessions to come."""

    name: str
    title: str
    model: str
    force: bool


class Imported(Struct, frozen=True, kw_only=True):
    """A file that is now a session; `assumed` if it named no model and one had to be taken."""

    file: str
    name: str
    messages: int
    model: str
    assumed: bool = False


def keep_file(store: Store, file: str, wish: Wish) -> list[Imported]:
    """Read a file to its end, then make it a session; raise a BadInput that says what to change.

    The log of an agent may hold several: its own has the file's name, and those of sub-agents a number behind it.
    """
    data = read_file(file)
    if is_session_file(data):
        return [_keep_whole(store, file, read_session(data), wish)]
    try:
        found = [decode_conversation(data)]
    except BadInput as error:
        found = recorded_in(file, whole=not isinstance(error, UnknownFormat))
        if not found:
            raise
    name = wish.name or _stem(file)
    names = [name, *(f"{name}-{number}" for number in range(2, len(found) + 1))]
    return [
        _keep_conversation(store, file, each, replace(wish, name=called))
        for called, each in zip(names, found, strict=True)
    ]


def _make_room(store: Store, name: str, *, force: bool) -> None:
    if not name.strip():
        raise BadInput("a session needs a name: give one with --name")
    if not store.outline(name).version:
        return
    if not force:
        raise BadInput(
            f"there is a session “{on_one_line(name, 60)}” already: give another --name, or delete it first with --force"
        )
    store.delete(name)


def _keep_conversation(store: Store, file: str, conversation: Conversation, wish: Wish) -> Imported:
    if not conversation.messages:
        raise BadInput("the conversation is empty: there is nothing to keep")
    name, model = wish.name or _stem(file), wish.model or conversation.model or DEFAULT_MODEL
    library = Lowwater(model=model, store=store)
    _make_room(store, name, force=wish.force)
    try:
        library.session(name, title=wish.title, source=SOURCE).take_in(
            [message.wire.raw for message in conversation.messages if message.wire is not None],
            system=Raw(conversation.system) if conversation.system else None,
            tools=Raw(conversation.tools) if conversation.tools else None,
        )
    except BadInput:
        store.delete(name)
        raise
    return Imported(
        file=spelled(file),
        name=name,
        messages=len(conversation.messages),
        model=model,
        assumed=not (wish.model or conversation.model),
    )


def _keep_whole(store: Store, file: str, session: WholeSession, wish: Wish) -> Imported:
    """Keep a session as it was in another store; a store takes one record at a time, so the ledger goes first, in one piece."""
    if wish.model:
        raise BadInput("a whole session has its models already: leave --model out")
    name = wish.name or session.name
    about = replace(session.about, title=wish.title or session.about.title)
    _make_room(store, name, force=wish.force)
    version = store.append(
        name,
        0,
        Append(entries=session.entries, events=session.events, carried=session.carried or None, about=about),
    )
    for record in session.records:
        version = store.append(name, version, Append(record=record))
    return Imported(
        file=spelled(file),
        name=name,
        messages=sum(len(entry.messages) for entry in session.entries if isinstance(entry, Appended)),
        model=next(
            (entry.model for entry in reversed(session.entries) if isinstance(entry, Opened | ModelChanged)),
            "",
        ),
    )


def _stem(file: str) -> str:
    """Return a file's name without its folder and the endings that conversations have."""
    if file == "-":
        return ""
    path = Path(file)
    while path.suffix.lower() in _ENDINGS and path.stem:
        path = path.with_suffix("")
    return spelled(path.name)


def spelled(file: str) -> str:
    """Return a file's name as text that can be kept and printed, whatever bytes it has."""
    return file.encode(errors="backslashreplace").decode()
