"""`lowwater compress`: compact a conversation in a file, and see what changed and why."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import AsJson, with_settings
from lowwater.cli.conversations import (
    ASSUMED_MODEL,
    FileArgument,
    FileFormat,
    FileModel,
    OpenedFile,
    open_file,
    open_session,
)
from lowwater.cli.tables import figures_table
from lowwater.core.events import Compaction
from lowwater.core.formats.files import Conversation, encode_conversation
from lowwater.core.policies.explanations import rejection
from lowwater.errors import BadInput, UnreadableFile
from lowwater.session.internals import internals
from lowwater.settings import Settings
from lowwater.settings.resolve import Resolved


@with_settings
def compress(
    file: FileArgument,
    *,
    focus: Annotated[str, typer.Option(metavar="TOPIC", help="Keep this in more detail.")] = "",
    model: FileModel = "",
    format: FileFormat = "auto",
    out: Annotated[str, typer.Option(metavar="FILE", help="Write the compacted conversation here.")] = "",
    when_due: Annotated[
        bool, typer.Option("--when-due", help="Compact only if the policy says so, not in any case.")
    ] = False,
    json: AsJson = False,
    settings: Resolved,
) -> None:
    """Compact a conversation and write it in the format it came in.

    FILE holds a JSON array of messages, JSON lines, or the body of an API
    request, OpenAI chat or Anthropic, plain or gzipped. Messages that do not
    change are written byte for byte. Without a summarizer the summary is
    extracted from the conversation itself: no key, no network.

    The result goes to --out, or to standard output if that is not a terminal.

    lowwater compress session.jsonl --out shorter.jsonl
    lowwater compress request.json --focus "the auth tests" --model claude-opus-5-5
    cat messages.json | lowwater compress - --json
    """
    if out and file != "-" and Path(out).exists() and Path(out).samefile(file):
        raise BadInput(
            f"--out names {out}, which is what is read: its originals would be lost; name another file"
        )
    opened = open_file(file, format)
    conversation = opened.conversation
    done = compressed(conversation, model=model, settings=settings.settings, focus=focus, when_due=when_due)
    event, why, result = done.event, done.why, done.result
    if json:
        typer.echo(_as_json(event, why, result, opened))
        return
    _deliver(result, out)
    console = Console(highlight=False, stderr=not sys.stdout.isatty() and not out)
    console.print(Text(why.splitlines()[0]), width=min(console.width, 100))
    if event:
        for each in event.rejected:
            console.print(Text(rejection(each), style="yellow"), width=min(console.width, 100))
        console.print(changes(event))
    for note in opened.notes():
        console.print(Text(note, style="yellow"), width=min(console.width, 100))
    if not model and not conversation.model:
        console.print(Text(ASSUMED_MODEL, style="bright_black"))
    if not out and sys.stdout.isatty():
        console.print(
            Text("Nothing was written: name a file with --out, or pipe the output.", style="bright_black")
        )


class CompressedFile(Struct, frozen=True, kw_only=True):
    """A conversation once it was compacted."""

    event: Compaction | None
    """What was done; None if nothing was."""
    why: str
    result: bytes
    """In the shape it came in."""


def compressed(
    conversation: Conversation, *, model: str, settings: Settings, focus: str = "", when_due: bool = False
) -> CompressedFile:
    """Return a conversation compacted, in any case or only if its policy says that it is due."""
    session = open_session(conversation, model=model, policy="", settings=settings)
    if when_due:
        session.prepare()
        event = internals(session).last_compaction
    else:
        event = session.compress(focus or None)
    why = session.explain()
    messages = session.prepare().messages if event else conversation.messages
    result = encode_conversation(replace(conversation, messages=tuple(messages)))
    return CompressedFile(event=event, why=why, result=result)


def changes(event: Compaction) -> Table:
    """Return what a compaction changed, as a table."""
    table = figures_table("", figures=("before", "after"), gap=3)
    table.add_column()
    left = f"{event.ratio:.0%} left"
    table.add_row("prompt tokens", f"{event.before:,}", f"{event.after:,}", left)
    table.add_row("messages", f"{event.items_before:,}", f"{event.items_after:,}", "")
    table.add_row("unchanged at the start", "", f"{event.first_changed:,}", "messages")
    table.add_row("to be cached again", "", f"{event.disturbed:,}", "tokens")
    if event.summarizer:
        score = f", {event.score:.0%} of critical references kept" if event.score is not None else ""
        table.add_row("summary", "", f"{event.summary_tokens:,}", f"tokens, {event.summarizer}{score}")
    table.add_row("by", "", "", ", ".join(event.mechanisms))
    return table


def _deliver(result: bytes, out: str) -> None:
    if out:
        try:
            Path(out).write_bytes(result)
        except OSError as error:
            raise UnreadableFile(f"{out} cannot be written: {error.strerror or error}") from None
    elif not sys.stdout.isatty():
        sys.stdout.buffer.write(result + (b"" if result.endswith(b"\n") else b"\n"))
        sys.stdout.buffer.flush()


def _as_json(event: Compaction | None, why: str, result: bytes, opened: OpenedFile) -> str:
    shape = opened.conversation.shape
    compacted: object = msgspec.Raw(result)
    if shape == "lines":
        compacted = [msgspec.Raw(line) for line in result.splitlines()]
    said = {
        "compacted": event is not None,
        "why": why,
        "event": event,
        "reclaimed": event.reclaimed if event else 0,
        "shape": shape,
        "conversation": compacted,
    } | opened.as_json()
    return msgspec.json.encode(said).decode()
