"""What the commands on stored sessions share: their arguments, opening the store, finding sessions and their accounts."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.text import Text

from lowwater.cli.command import say
from lowwater.cli.tables import print_lines
from lowwater.cli.wording import on_one_line, printable
from lowwater.core.accounts.cadence import turns_before_events
from lowwater.core.stored import Account, Listed
from lowwater.errors import BadInput, DamagedStore, LowwaterError
from lowwater.protocols import Store
from lowwater.session import factories

StoreAddress = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="ADDRESS",
        help="sqlite:///PATH or postgresql://…; by default LOWWATER_STORE, else a file in your data folder.",
    ),
]
EMPTY = "no session is kept here yet: --store or LOWWATER_STORE name another place"
_MAX_NAMED = 5


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
            f"no session is kept yet: there is no file {file}. `lowwater run -- claude` keeps the first one; --store or "
            "LOWWATER_STORE name another place"
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


OptionalSession = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="A stored session; by default the newest.", autocompletion=complete_session
    ),
]


def session_or_newest(store: Store, name: str | None) -> Listed:
    """Return the session of this name, by default the one changed last; raise BadInput if there is none."""
    known = store.sessions()
    return known[0] if name is None and known else named(known, name or "")


def accounts_of(store: Store, names: Sequence[str] | None = None) -> list[Account]:
    """Return the accounts of these sessions, or of all; damaged ones are left out and reported on standard error."""
    try:
        return store.accounts(names)
    except DamagedStore as error:
        names = [listed.name for listed in store.sessions()] if names is None else names
        if len(names) > 1:
            return [account for name in names for account in accounts_of(store, [name])]
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


def command_line(words: Sequence[str], *, store: str) -> str:
    """Return a command quoted for the shell, with its `--store` if one was given."""
    return shlex.join(["lowwater", *words, *(["--store", store] if store else [])])


def print_command(said: str, command: str) -> None:
    """Print a command on a line of its own, ready to be pasted, below a sentence about it."""
    print_lines([Text(f"\n{said}", style="bright_black"), Text(f"  {printable(command)}")])
