"""`lowwater sessions import`: conversations in files become kept sessions."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import typer
from msgspec import Struct
from rich.console import Console
from rich.progress import track

from lowwater.cli.conversations import ASSUMED_MODEL, DEFAULT_MODEL
from lowwater.cli.failing import FAILED, say
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.sessions.flags import AsJson, redacts
from lowwater.cli.sessions.keeping import Imported, Wish, keep_file, spelled
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.wording import counted
from lowwater.errors import BadInput, LowwaterError, StoreFailed


class Failed(Struct, frozen=True, kw_only=True):
    """A file that is none, and why."""

    file: str
    error: str


def import_sessions(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Conversations; - reads standard input.")
    ],
    *,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What to call it; default: as the file.", show_default=False)
    ] = "",
    title: Annotated[str, typer.Option(metavar="TEXT", help="Its title.", show_default=False)] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="Its model; default: the file's.", show_default=False)
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Delete a session of that name first.")] = False,
    json: AsJson = False,
    store: StoreAddress = "",
) -> None:
    """Keep conversations from files as sessions.

    FILE holds a JSON array of messages, JSON lines, or the body of an API
    request, OpenAI chat or Anthropic, plain or gzipped; the log of an agent
    that `lowwater audit` reads, without what its own compactions left; or a
    whole session that `export --whole` wrote, which keeps its name. A file
    that cannot be used is named and does not stop the others; the exit code
    is 1 then.

    lowwater sessions import session.jsonl
    lowwater sessions import request.json --name refactor-auth --title "Auth"
    lowwater sessions import archive/*.jsonl.gz --model claude-opus-5-5
    """
    if len(files) > 1 and (name or title):
        raise BadInput(f"one --name or --title does not fit {len(files)} files: import them one by one")
    wish = Wish(name=name, title=title, model=model, force=force)
    done: list[Imported] = []
    failed: list[Failed] = []
    with opened_store(store, redact=redacts(None), creates=True) as opened:
        for file in _watched(files, json=json):
            try:
                done.extend(keep_file(opened, file, wish))
            except StoreFailed:
                raise
            except LowwaterError as error:
                failed.append(Failed(file=spelled(file), error=str(error)))
    _tell(done, failed, json=json)
    if failed:
        raise typer.Exit(FAILED)


def _watched(files: Sequence[str], *, json: bool) -> Iterator[str]:
    """Yield the files, with a bar on a terminal if there are several."""
    shows = len(files) > 1 and not json and sys.stderr.isatty()
    console = Console(stderr=True)
    yield from track(files, "importing", console=console, transient=True, disable=not shows)


def _tell(done: Sequence[Imported], failed: Sequence[Failed], *, json: bool) -> None:
    if json:
        said = msgspec.json.encode({"imported": done, "failed": failed})
        typer.echo(msgspec.json.format(said, indent=2).decode())
    for each in failed:
        say(f"{on_one_line(each.file, 200)}: {each.error}")
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
