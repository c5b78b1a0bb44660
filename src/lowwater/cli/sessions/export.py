"""`lowwater sessions export`: a kept session as a file."""

import gzip
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import Raw, Struct

from lowwater.cli.failing import say
from lowwater.cli.kept_session import SessionName, named
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.sessions.flags import AsJson, Redact, redacts
from lowwater.cli.sessions.named import ledger_of
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.formats.files import WholeSession, conceal_session, message_lines, session_lines
from lowwater.core.legality import mend
from lowwater.core.messages import Message
from lowwater.core.reconcile import branch_of
from lowwater.core.secrets.redaction import conceal_message
from lowwater.core.view import fold, folded
from lowwater.core.wording import counted
from lowwater.errors import BadInput, UnreadableFile
from lowwater.protocols import Store


class Exported(Struct, frozen=True, kw_only=True):
    """Lines to be written, and what is to be said about them."""

    lines: list[bytes]
    concealed: int
    """How many messages (of a whole session: entries) had secrets that were concealed."""
    taken_back: int = 0
    """How many messages are left out because a rewind took them back."""


def export(
    name: SessionName,
    *,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Write it here, gzipped if it ends in .gz; - is standard output.",
            show_default=False,
        ),
    ] = "",
    view: Annotated[bool, typer.Option("--view", help="What the model is shown now instead.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Everything kept, for `import`: compactions, turns, costs.")
    ] = False,
    taken_back: Annotated[
        bool, typer.Option("--all", help="Also the messages that a rewind or a client took back.")
    ] = False,
    redact: Redact = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Write a session's messages as they came, byte for byte, one a line.

    Compactions change nothing about it: what went in comes out. Secrets are
    concealed unless --no-redact or the setting privacy.redact says otherwise;
    how many messages had some is said on standard error.

    lowwater sessions export refactor-auth --out auth.jsonl
    lowwater sessions export refactor-auth --view | lowwater inspect -
    lowwater sessions export refactor-auth --whole --out auth.whole.gz
    """
    if sum((view, whole, taken_back)) > 1:
        raise BadInput("--view, --whole and --all exclude each other: give one of them")
    if not out and not json and sys.stdout.isatty():
        raise BadInput(
            "standard output is a terminal: name a file with --out, or pipe it; --out - prints it here"
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


def _messages(store: Store, name: str, *, view: bool, taken_back: bool, conceals: bool) -> Exported:
    ledger = ledger_of(store, name)
    left_out = 0
    if view:
        shown = mend(ledger.view.messages)
        messages: Sequence[Message] = fold(shown, folded(shown, ledger.view.items))
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
    """Write a file; a new one only its owner may read, and it is there whole or not at all."""
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
        say(f"secrets in {exported.concealed:,} {nouns} are concealed; --no-redact leaves them")
    if exported.taken_back:
        say(
            f"{counted(exported.taken_back, 'message')} that were taken back are left out; --all has them too"
        )
    if out and out != "-":
        say(f"{on_one_line(name, 60)}: {counted(len(exported.lines), 'line')} written to {out}")
