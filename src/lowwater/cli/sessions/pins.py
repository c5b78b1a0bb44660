"""`lowwater sessions pins`: lists, adds, removes and imports the standing instructions of a stored session."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec import Struct
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import AsJson
from lowwater.cli.stored_sessions import SessionName, StoreAddress, find_session, opened_store
from lowwater.cli.tables import print_json, print_page
from lowwater.cli.wording import on_one_line, printable
from lowwater.core.summary.pins import Pin
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session

_STATUS = {"in_force": "in force", "proposed": "proposed", "replaced": "replaced"}
_SOURCE = {"user": "by hand", "recognised": "recognised", "model": "by the model"}


class _ListedPin(Struct, frozen=True, kw_only=True):
    """A pin in a file that `--json` wrote; what else it says of one is of another session."""

    text: str
    status: str = "in_force"


class _PinFile(Struct, frozen=True, kw_only=True):
    pins: tuple[_ListedPin, ...]


def pins(
    name: SessionName,
    *,
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add", metavar="TEXT|lw:N", help="Keep this in every later view; also confirms a proposal."
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            "--remove", metavar="TEXT|lw:N", help="Let a pin go, by its handle or the beginning of its text."
        ),
    ] = None,
    bring: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Add the pins in force of a file that --json wrote."),
    ] = None,
    store: StoreAddress = "",
    json: AsJson = False,
) -> None:
    """List and change what the user laid down for a session.

    What is in force stands in every view word for word, whatever was compacted. Most of it is
    recognised when it is said; what the model proposed waits for --add.

    lowwater sessions pins refactor-auth
    lowwater sessions pins refactor-auth --add "Never touch vendor/." --remove lw:12
    lowwater sessions pins refactor-auth --json > pins.json
    lowwater sessions pins another --import pins.json
    """
    brought = _read(bring) if bring is not None else ()
    with opened_store(store) as opened:
        session = open_kept(opened, find_session(opened, name))
        for wanted in remove or ():
            session.unpin(wanted)
        for text in (*brought, *(add or ())):
            session.pin(text)
        found = session.pins()
        if json:
            listed = [
                {"text": pin.text, "handle": pin.handle, "source": pin.source, "status": pin.status}
                for pin in found
            ]
            print_json({"session": session.name, "pins": listed})
        else:
            print_page(pins_page(session, found))


def pins_page(session: Session, found: Sequence[Pin]) -> Iterator[Text | Table | Padding]:
    """Yield each pin with its handle, whether it is in force, and where it comes from."""
    in_force = sum(pin.status == "in_force" for pin in found)
    left_out = session.status().pins_left_out
    said = f"{counted(in_force, 'standing instruction')} in force"
    room = f", {left_out:,} of them without room in the prompt" if left_out else ""
    yield Text.assemble((on_one_line(session.name, 200), "bold"), f" · {said}{room}")
    if not found:
        yield Text("What the user lays down for the rest of the session is kept by itself, or by hand.")
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    table.add_column(style="bright_black", no_wrap=True)
    for pin in found:
        how = _SOURCE[pin.source] if pin.status == "in_force" else _STATUS[pin.status]
        style = "" if pin.status == "in_force" else "bright_black"
        table.add_row(pin.handle or "–", Text(printable(pin.text), style=style), how)
    yield table


def _read(file: Path) -> tuple[str, ...]:
    try:
        listed = msgspec.json.decode(file.read_bytes(), type=_PinFile)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror or type(error).__name__}") from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise BadInput(
            f"{file} has no pins: give a file that `lowwater sessions pins NAME --json` wrote"
        ) from None
    return tuple(pin.text for pin in listed.pins if pin.status == "in_force")
