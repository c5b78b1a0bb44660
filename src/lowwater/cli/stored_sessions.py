"""What the commands on stored sessions share: the option `--store`, finding and opening a session, printing pages."""

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
from lowwater.core.accounts.cadence import Cadence, turns_before_events
from lowwater.core.stored import Account, Listed
from lowwater.errors import BadInput, DamagedStore, LowwaterError
from lowwater.protocols import Store
from lowwater.session import factories
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.plugins import is_policy
from lowwater.session.session import Session
from lowwater.settings import Settings

StoreAddress = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="sqlite:///PATH or postgresql://…; by default LOWWATER_STORE, else a file in your data folder.",
        show_default=False,
    ),
]
LABEL = 10
"""Width of a label, including the gap before its value."""
EMPTY = "no session is kept here yet: --store or LOWWATER_STORE name another place"
_MAX_NAMED = 5
_MAX_WIDTH, _MIN_WIDTH = 120, 40


@contextmanager
def opened_store(
    address: str = "", *, redact: bool = True, creates: bool = False, is_needed: bool = True
) -> Iterator[Store]:
    """Open the store at an address, or the default one, and close it again; `redact` keeps secrets out of its index.

    A missing file is created only if `creates`. Otherwise it is an error, or, unless `is_needed`, an empty store.
    """
    place = address.strip() or factories.default_address()
    file = factories.file_at(place)
    if not creates and file is not None and not file.exists():
        if not is_needed:
            yield factories.resolve_store(factories.FORGETFUL)
            return
        raise BadInput(
            f"no session is kept yet: there is no file {file}; --store or LOWWATER_STORE name another place"
        )
    store = factories.resolve_store(address.strip() or None, redact=redact)
    try:
        yield store
    finally:
        store.close()


def find_session(store: Store, name: str) -> Listed:
    """Return the session of this name, or the only one whose name starts with it; the BadInput raised otherwise names similar ones."""
    return named(store.sessions(), name)


def named(known: Sequence[Listed], wanted: str) -> Listed:
    """Like `find_session`, among sessions already listed."""
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
    raise BadInput(f"there is no session {quoted(wanted)}: {_suggestions(known, wanted)}")


def several(known: Sequence[Listed]) -> str:
    """Return the names of the first few sessions, and how many more there are."""
    more = f" and {len(known) - _MAX_NAMED:,} more" if len(known) > _MAX_NAMED else ""
    return ", ".join(quoted(each.name) for each in known[:_MAX_NAMED]) + more


def _suggestions(known: Sequence[Listed], wanted: str) -> str:
    sought = wanted.lower()
    names = [each.name for each in known]
    alike = [
        *get_close_matches(wanted, names, n=3),
        *(each.name for each in known if sought in each.name.lower() or sought in each.about.title.lower()),
    ]
    chosen = list(dict.fromkeys(alike))[:_MAX_NAMED] if sought else []
    if chosen:
        return f"did you mean {' or '.join(map(quoted, chosen))}?"
    return f"the newest {'is' if len(names) == 1 else 'are'} {', '.join(map(quoted, names[:3]))}"


def quoted(name: str) -> str:
    """Return a name in quotes, on one line."""
    return f"“{on_one_line(name, 60)}”"


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the session names that start with `incomplete`; none if the store cannot be read."""
    try:
        with opened_store(str(ctx.params.get("store") or ""), is_needed=False) as store:
            return [each.name for each in store.sessions() if each.name.startswith(incomplete)]
    except LowwaterError:
        return []


SessionName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A stored session, by its name or the beginning of it.",
        autocompletion=complete_session,
    ),
]


def newest_session(store: Store) -> Listed:
    """Return the session changed last, or raise BadInput if there is none."""
    known = store.sessions()
    if not known:
        raise BadInput(EMPTY)
    return known[0]


def open_kept(store: Store, listed: Listed, settings: Settings | None = None) -> Session:
    """Open a stored session as it was left: with its last model, and with its policy unless the settings choose another."""
    chosen, model = settings or Settings(), listed.model or DEFAULT_MODEL
    session = Lowwater(model=model, store=store, settings=chosen).session(listed.name, as_left=True)
    left, is_set = internals(session).last_policy, chosen.compression.policy != Settings().compression.policy
    if not left or is_set or left == chosen.compression.policy or not is_policy(left):
        return session
    return Lowwater(model=model, store=store, settings=chosen, policy=left).session(listed.name, as_left=True)


def all_accounts(store: Store) -> list[Account]:
    """Return the accounts of all readable sessions; damaged ones are reported on standard error."""
    try:
        return store.accounts()
    except DamagedStore:
        return [account for listed in store.sessions() for account in _account_of(store, listed)]


def _account_of(store: Store, listed: Listed) -> list[Account]:
    try:
        return store.accounts([listed.name])
    except DamagedStore as error:
        say(f"warning: left out: {error}")
        return []


def later_than(account: Account, begin: float) -> Account:
    """Return the account without anything before `begin`."""
    records = tuple(record for record in account.records if record.at >= begin)
    events = tuple(event for event in account.events if event.at >= begin)
    before = [
        sum(record.at >= begin for record in account.records[:turns])
        for event, turns in zip(account.events, turns_before_events(account), strict=True)
        if event.at >= begin
    ]
    return replace(account, records=records, events=events, turns_before=tuple(before))


def page_width() -> int:
    """Return the width of a page: that of the terminal, within limits."""
    return max(_MIN_WIDTH, min(Console().width, _MAX_WIDTH))


def print_page(blocks: Iterable[RenderableType]) -> None:
    """Print blocks one below the other; nothing in a table is cut off, however narrow the terminal is."""
    console, width = Console(highlight=False), page_width()
    for block in blocks:
        console.print(fitted_block(block, width), width=width)


def fitted_block(block: RenderableType, width: int) -> RenderableType:
    """Return a block so that nothing in it is cut off; an expanding table already fits."""
    return unclipped(block, width) if isinstance(block, Table) and not block.expand else block


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines without wrapping them; much faster than `print_page` for hundreds of lines."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def print_json(said: object) -> None:
    """Print a value as JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())


def command_line(words: Sequence[str], *, store: str) -> str:
    """Return a command quoted for the shell, with its `--store` if one was given."""
    return shlex.join(["lowwater", *words, *(["--store", store] if store else [])])


def print_command(said: str, command: str) -> None:
    """Print a command on a line of its own, ready to be pasted, below a sentence about it."""
    print_lines([Text(f"\n{said}", style="bright_black"), Text(f"  {printable(command)}")])


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


def cadence_table(of: Cadence) -> Table:
    """Return a table of the seven cadence metrics."""
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
    """Return a net saving, red if it is a loss."""
    return Text(
        amount(nano), style="red" if nano is not None and nano < 0 else "green" if nano else "default"
    )
