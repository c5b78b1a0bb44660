"""`lowwater sessions export` and `import`: sessions to files, and conversations from files."""

import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import Raw, Struct
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track

from lowwater.adapters.files import read_text_file
from lowwater.cli.command import FAILED, AsJson, say
from lowwater.cli.conversations import ASSUMED_MODEL, recorded_in
from lowwater.cli.sessions.changes import Redact, ledger_of, redacts
from lowwater.cli.stored_sessions import SessionName, StoreAddress, named, opened_store
from lowwater.cli.tables import print_json
from lowwater.cli.wording import on_one_line
from lowwater.core.entries import Appended, ModelChanged, Opened
from lowwater.core.formats.files import (
    Conversation,
    WholeSession,
    conceal_session,
    decode_conversation,
    is_session_file,
    message_lines,
    read_session,
    session_lines,
)
from lowwater.core.legality import mend
from lowwater.core.messages import Message
from lowwater.core.reconcile import branch_of
from lowwater.core.secrets.redaction import conceal_message
from lowwater.core.stored import Append
from lowwater.core.view import join_neighbours, neighbours_to_join
from lowwater.core.wording import counted
from lowwater.errors import BadInput, LowwaterError, StoreFailed, UnknownFormat, UnreadableFile
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.reopen import DEFAULT_MODEL

# export


def export(
    name: SessionName,
    *,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Write to this file, gzipped if it ends in .gz; - is standard output."
        ),
    ] = "",
    view: Annotated[bool, typer.Option("--view", help="Write what the model is shown now.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Write everything, for `import`: compactions, turns, costs.")
    ] = False,
    taken_back: Annotated[
        bool, typer.Option("--all", help="Include messages that a rewind or a client retracted.")
    ] = False,
    redact: Redact = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Write the messages of a session, byte for byte, one per line.

    The messages are those that came in, whatever has been compacted. Secrets
    are redacted unless --no-redact or the setting privacy.redact says otherwise;
    standard error tells in how many messages.

    lowwater sessions export refactor-auth --out auth.jsonl
    lowwater sessions export refactor-auth --view | lowwater inspect -
    lowwater sessions export refactor-auth --whole --out auth.whole.gz
    """
    if sum((view, whole, taken_back)) > 1:
        raise BadInput("--view, --whole and --all exclude each other: give one of them")
    if not out and not json and sys.stdout.isatty():
        raise BadInput(
            "standard output is a terminal: name a file with --out, or use a pipe; --out - prints it here"
        )
    conceals = redacts(redact)
    with opened_store(store) as opened:
        found = named(opened.sessions(), name).name
        if whole:
            exported = _whole(opened, found, conceals=conceals)
        else:
            exported = _messages(opened, found, view=view, taken_back=taken_back, conceals=conceals)
    if out and out != "-":
        _write(out, _joined(exported.lines), force=force)
    if json:
        typer.echo(_as_json(found, exported, out))
    elif not out or out == "-":
        sys.stdout.buffer.write(_joined(exported.lines))
        sys.stdout.buffer.flush()
    _tell(found, exported, out="" if json else out, noun="entry" if whole else "message")


class Exported(Struct, frozen=True, kw_only=True):
    """The lines to write, and what to report about them."""

    lines: list[bytes]
    concealed: int
    """How many messages (of a whole session: entries) had secrets, which are redacted."""
    taken_back: int = 0
    """How many messages are left out because a rewind or the client retracted them."""


def _messages(store: Store, name: str, *, view: bool, taken_back: bool, conceals: bool) -> Exported:
    ledger = ledger_of(store, name)
    left_out = 0
    if view:
        shown = mend(ledger.view.messages)
        messages: Sequence[Message] = join_neighbours(shown, neighbours_to_join(shown, ledger.view.items))
    else:
        messages = ledger.history()
        if not taken_back:
            branch = branch_of(ledger)
            left_out = len(messages) - len(branch)
            messages = [messages[number - 1] for number in branch]
    told = [conceal_message(message) for message in messages] if conceals else messages
    changed = sum(new is not old for new, old in zip(told, messages, strict=True))
    return Exported(lines=message_lines(told), concealed=changed, taken_back=left_out)


def _whole(store: Store, name: str, *, conceals: bool) -> Exported:
    stored, accounts = store.read(name), store.accounts([name])
    session = WholeSession(
        name=name,
        about=stored.about,
        entries=stored.entries,
        records=accounts[0].records if accounts else (),
        events=accounts[0].events if accounts else (),
        carried=stored.carried,
    )
    if not conceals:
        return Exported(lines=list(session_lines(session)), concealed=0)
    concealed = conceal_session(session)
    return Exported(lines=list(session_lines(concealed.session)), concealed=concealed.changed)


def _write(out: str, data: bytes, *, force: bool) -> None:
    """Write a file; a new one is readable by its owner only, and is removed if it cannot be written completely."""
    path = Path(out)
    data = gzip.compress(data, mtime=0) if path.suffix == ".gz" else data
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            try:
                file.write(data)
                file.flush()
            except OSError:
                if not force:
                    path.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise BadInput(f"{out} exists: name another file, or overwrite it with --force") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise UnreadableFile(f"{out} cannot be written: {said}") from None


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _as_json(name: str, exported: Exported, out: str) -> bytes:
    said: dict[str, object] = {
        "session": name,
        "lines": len(exported.lines),
        "concealed": exported.concealed,
        "taken_back": exported.taken_back,
        "out": out,
    }
    if not out or out == "-":
        said["exported"] = [Raw(line) for line in exported.lines]
    return msgspec.json.encode(said)


def _tell(name: str, exported: Exported, *, out: str, noun: str) -> None:
    if exported.concealed:
        nouns = noun if exported.concealed == 1 else {"entry": "entries", "message": "messages"}[noun]
        say(f"secrets in {exported.concealed:,} {nouns} are redacted; --no-redact leaves them")
    if exported.taken_back:
        say(
            f"{counted(exported.taken_back, 'message')} that were retracted are left out; --all includes them"
        )
    if out and out != "-":
        say(f"{on_one_line(name, 60)}: {counted(len(exported.lines), 'line')} written to {out}")


# import

SOURCE = "import"
"""The source of sessions that were imported from files."""
_ENDINGS = frozenset({".gz", ".json", ".jsonl", ".ndjson"})


class Wish(Struct, frozen=True, kw_only=True):
    """The options for the sessions to import."""

    name: str
    title: str
    model: str
    force: bool


class Imported(Struct, frozen=True, kw_only=True):
    """A session from a file; `assumed` if the file named no model, so that the default was taken."""

    file: str
    name: str
    messages: int
    model: str
    assumed: bool = False


class FailedFile(Struct, frozen=True, kw_only=True):
    """A file that could not be imported, and why."""

    file: str
    error: str


def import_sessions(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Conversations; - reads standard input.")
    ],
    *,
    name: Annotated[str, typer.Option(metavar="NAME", help="The session's name; default: the file's.")] = "",
    title: Annotated[str, typer.Option(metavar="TEXT", help="The session's title.")] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The session's model; default: the file's.")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a session of the same name.")] = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Store conversations from files as sessions.

    FILE is a JSON array of messages, JSON lines, or the body of a request to
    OpenAI chat or Anthropic; an agent's log that `lowwater audit` reads, as if
    the agent had never compacted it; or a session from `export --whole`, which
    keeps its name. Files may be gzipped. A file that cannot be used is reported
    and does not stop the others; the exit code is 1 then.

    lowwater sessions import session.jsonl
    lowwater sessions import request.json --name refactor-auth --title "Auth"
    lowwater sessions import archive/*.jsonl.gz --model claude-opus-5-5
    """
    if len(files) > 1 and (name or title):
        raise BadInput(f"one --name or --title does not fit {len(files)} files: import them one by one")
    wish = Wish(name=name, title=title, model=model, force=force)
    done: list[Imported] = []
    failed: list[FailedFile] = []
    with opened_store(store, redact=redacts(None), creates=True) as opened:
        for file in _watched(files, json=json):
            try:
                done.extend(keep_file(opened, file, wish))
            except StoreFailed:
                raise
            except LowwaterError as error:
                failed.append(FailedFile(file=spelled(file), error=str(error)))
    _tell_imported(done, failed, json=json)
    if failed:
        raise typer.Exit(FAILED)


def _watched(files: Sequence[str], *, json: bool) -> Iterator[str]:
    """Yield the files, with a progress bar if there are several and a terminal."""
    shows = len(files) > 1 and not json and sys.stderr.isatty()
    console = Console(stderr=True)
    yield from track(files, "importing", console=console, transient=True, disable=not shows)


def _tell_imported(done: Sequence[Imported], failed: Sequence[FailedFile], *, json: bool) -> None:
    if json:
        print_json({"imported": done, "failed": failed})
    for each in failed:
        is_named = each.error.startswith(each.file)
        say(each.error if is_named else f"{on_one_line(each.file, 200)}: {each.error}")
    if json:
        return
    if len(done) == 1:
        only = done[0]
        typer.echo(f"{on_one_line(only.name, 80)}: {counted(only.messages, 'message')}, on {only.model}")
        if only.assumed:
            say(ASSUMED_MODEL)
    elif done:
        messages = sum(each.messages for each in done)
        typer.echo(f"{counted(len(done), 'session')} with {counted(messages, 'message')} imported")
        without = sum(each.assumed for each in done)
        if without:
            say(
                f"{counted(without, 'file')} named no model: {DEFAULT_MODEL} is assumed, --model names another"
            )


def keep_file(store: Store, file: str, wish: Wish) -> list[Imported]:
    """Read a whole file and store it as a session; if that is impossible, raise a BadInput that says what to change.

    The log of an agent may hold several sessions: the agent's own gets the file's name, those of sub-agents the name with a number.
    """
    data = read_text_file(file)
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


def _keep_conversation(store: Store, file: str, conversation: Conversation, wish: Wish) -> Imported:
    if not conversation.messages:
        raise BadInput("the conversation is empty: there is nothing to keep")
    name, model = wish.name or _stem(file), wish.model or conversation.model or DEFAULT_MODEL
    library = Lowwater(model=model, store=store, summarizer=())
    _make_room(store, name, force=wish.force)
    try:
        internals(library.session(name, title=wish.title, source=SOURCE)).sync_messages(
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
    """Store a session as it was in another store: the ledger in one append, then each record, as an append takes only one."""
    if wish.model:
        raise BadInput("a session from `export --whole` has its models already: leave --model out")
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


def _make_room(store: Store, name: str, *, force: bool) -> None:
    if not name.strip():
        raise BadInput("a session needs a name: give one with --name")
    if not store.outline(name).version:
        return
    if not force:
        raise BadInput(
            f"there is a session “{on_one_line(name, 60)}” already: give another --name, or replace it with --force"
        )
    store.delete(name)


def _stem(file: str) -> str:
    """Return a file's name without its folder and without suffixes such as .jsonl.gz."""
    if file == "-":
        return ""
    path = Path(file)
    while path.suffix.lower() in _ENDINGS and path.stem:
        path = path.with_suffix("")
    return spelled(path.name)


def spelled(file: str) -> str:
    """Return a file's name as valid text, whatever bytes it has."""
    return file.encode(errors="backslashreplace").decode()
