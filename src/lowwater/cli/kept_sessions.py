"""What the commands on kept sessions share: the option `--store`, finding a session, printing it."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from lowwater.cli.command import say
from lowwater.cli.conversations import DEFAULT_MODEL
from lowwater.cli.tables import unclipped
from lowwater.cli.wording import amount, figure, on_one_line, printable
from lowwater.core.accounts.cadence import Cadence, turns_before
from lowwater.core.stored import Account, Listed
from lowwater.errors import BadInput, DamagedStore, LowwaterError
from lowwater.protocols import Store
from lowwater.session import factories
from lowwater.session.library import Lowwater
from lowwater.session.plugins import is_policy
from lowwater.session.session import Session
from lowwater.settings import Settings

StoreAddress = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="sqlite:///PATH or postgresql://…; else LOWWATER_STORE, else a file of yours.",
        show_default=False,
    ),
]
LABEL = 10
"""Columns of a label with what is between it and its value."""
EMPTY = "no session is kept here yet: --store or LOWWATER_STORE name another place"
_MOST = 5
_WIDEST, _LEAST = 120, 40


@contextmanager
def opened_store(
    address: str = "", *, redact: bool = True, creates: bool = False, is_needed: bool = True
) -> Iterator[Store]:
    """Open the store at an address, or the default one, and close it again; `redact` keeps secrets out of its index.

    A file that is not there is only made by a command that `creates` something in it; for one that it is not needed by, it is
    an empty store.
    """
    place = address.strip() or factories.default_address()
    file = factories.file_at(place)
    if not creates and file is not None and not file.exists():
        if not is_needed:
            yield factories.opened_store(factories.FORGETFUL)
            return
        raise BadInput(
            f"no session is kept yet: there is no file {file}; --store or LOWWATER_STORE name another place"
        )
    store = factories.opened_store(address.strip() or None, redact=redact)
    try:
        yield store
    finally:
        store.close()


def cadence_table(of: Cadence) -> Table:
    """Return the seven cadence metrics, and what belongs to them."""
    table = grid("cadence", label=28)
    table.add_row("compactions per 100 turns", figure(of.events_per_100_turns))
    table.add_row("turns between them", figure(of.turns_between_events))
    table.add_row("tokens reclaimed by each", figure(of.reclaimed_per_event, places=0))
    table.add_row("earliest changed message", figure(of.earliest_changed))
    mean = (
        f"; a summary has {of.mean_summary_tokens:,.0f} tokens" if of.mean_summary_tokens is not None else ""
    )
    table.add_row("summary calls", f"{of.summary_calls:,}{mean}")
    table.add_row(
        "prunes per summary", f"{figure(of.prunes_per_summary)} ({of.prunes:,} to {of.summaries:,})"
    )
    table.add_row("prompt + summary tokens", figure(of.prompt_and_summary_tokens))
    if of.last_mode:
        table.add_row("last mode", of.last_mode)
    if of.skips:
        table.add_row(
            "left as it was", ", ".join(f"{code} {times:,}" for code, times in list(of.skips.items())[:3])
        )
    return table


def net(nano: int | None) -> Text:
    """Return what was saved in the end, red if it was a loss."""
    return Text(
        amount(nano), style="red" if nano is not None and nano < 0 else "green" if nano else "default"
    )


def grid(title: str = "", *, label: int = LABEL) -> Table:
    """Return an empty table of labels and values."""
    table = Table(
        box=None,
        show_header=False,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        title=title or None,
        title_justify="left",
        title_style="bold",
    )
    table.add_column(style="bright_black", no_wrap=True, width=label - 2)
    table.add_column()
    return table


def find_session(store: Store, name: str) -> Listed:
    """Return the session of this name, or the only one whose name begins so; raise a BadInput that names those like it."""
    return named(store.sessions(), name)


def named(known: Sequence[Listed], wanted: str) -> Listed:
    """Do what `find_session` does among sessions that are listed already."""
    if not known:
        raise BadInput(EMPTY)
    exact = next((each for each in known if each.name == wanted), None)
    if exact is not None:
        return exact
    begin = [each for each in known if wanted and each.name.startswith(wanted)]
    if len(begin) == 1:
        return begin[0]
    if begin:
        raise BadInput(f"{len(begin):,} sessions begin with {quoted(wanted)}: {several(begin)}")
    raise BadInput(f"there is no session {quoted(wanted)}: {_near(known, wanted)}")


def several(known: Sequence[Listed]) -> str:
    """Name some of the sessions, and say how many more there are."""
    more = f" and {len(known) - _MOST:,} more" if len(known) > _MOST else ""
    return ", ".join(quoted(each.name) for each in known[:_MOST]) + more


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names that Tab may complete to; a store that cannot be read has none."""
    try:
        with opened_store(str(ctx.params.get("store") or ""), is_needed=False) as store:
            return [each.name for each in store.sessions() if each.name.startswith(incomplete)]
    except LowwaterError:
        return []


SessionName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A kept session, by its name or the beginning of it.",
        autocompletion=complete_session,
    ),
]


def newest_session(store: Store) -> Listed:
    """Return the session that was changed last, or raise BadInput if there is none."""
    known = store.sessions()
    if not known:
        raise BadInput(EMPTY)
    return known[0]


def open_kept(store: Store, listed: Listed, settings: Settings | None = None) -> Session:
    """Return a kept session as it was left: on the model it had last, and with its policy unless another is set."""
    chosen, model = settings or Settings(), listed.model or DEFAULT_MODEL
    session = Lowwater(model=model, store=store, settings=chosen).session(listed.name, as_left=True)
    left, is_set = session.left_with, chosen.compression.policy != Settings().compression.policy
    if not left or is_set or left == chosen.compression.policy or not is_policy(left):
        return session
    return Lowwater(model=model, store=store, settings=chosen, policy=left).session(listed.name, as_left=True)


def all_accounts(store: Store) -> list[Account]:
    """Return the accounts of all sessions that can be read; those that cannot are named on standard error."""
    try:
        return store.accounts()
    except DamagedStore:
        return [account for listed in store.sessions() for account in _readable(store, listed)]


def later_than(account: Account, begin: float) -> Account:
    """Return the account without what came before a moment."""
    records = tuple(record for record in account.records if record.at >= begin)
    events = tuple(event for event in account.events if event.at >= begin)
    before = [
        sum(record.at >= begin for record in account.records[:turns])
        for event, turns in zip(account.events, turns_before(account), strict=True)
        if event.at >= begin
    ]
    return replace(account, records=records, events=events, turns_before=tuple(before))


def _readable(store: Store, listed: Listed) -> list[Account]:
    try:
        return store.accounts([listed.name])
    except DamagedStore as error:
        say(f"warning: left out: {error}")
        return []


def _near(known: Sequence[Listed], wanted: str) -> str:
    sought = wanted.lower()
    names = [each.name for each in known]
    alike = [
        *get_close_matches(wanted, names, n=3),
        *(each.name for each in known if sought in each.name.lower() or sought in each.about.title.lower()),
    ]
    chosen = list(dict.fromkeys(alike))[:_MOST] if sought else []
    if chosen:
        return f"did you mean {' or '.join(map(quoted, chosen))}?"
    return f"the newest {'is' if len(names) == 1 else 'are'} {', '.join(map(quoted, names[:3]))}"


def quoted(name: str) -> str:
    """Return a name in quotes, on one line."""
    return f"“{on_one_line(name, 60)}”"


def page_width() -> int:
    """Return how wide a page is: as the terminal, within limits."""
    return max(_LEAST, min(Console().width, _WIDEST))


def print_page(blocks: Iterable[RenderableType]) -> None:
    """Print what a page is made of, one block below the other; tables lose nothing, however narrow the terminal is."""
    console, width = Console(highlight=False), page_width()
    for block in blocks:
        console.print(fitted_block(block, width), width=width)


def fitted_block(block: RenderableType, width: int) -> RenderableType:
    """Return a block of a page so that nothing in it is cut; a table that fills the page fits by itself."""
    return unclipped(block, width) if isinstance(block, Table) and not block.expand else block


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines that are as long as they should be; much faster than a page where there are hundreds."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def print_json(said: object) -> None:
    """Print a value for programs."""
    typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def command_line(words: Sequence[str], *, store: str) -> str:
    """Return a command as a shell takes it, with the store it is about if one was named."""
    return shlex.join(["lowwater", *words, *(["--store", store] if store else [])])


def print_command(said: str, command: str) -> None:
    """Print what a command is for, and the command on a line of its own that can be pasted."""
    print_lines([Text(f"\n{said}", style="bright_black"), Text(f"  {printable(command)}")])
