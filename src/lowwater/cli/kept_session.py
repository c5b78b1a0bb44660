"""Finding kept sessions, for the commands that look at one or at all of them."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated

import typer
from msgspec.structs import replace

from lowwater.cli.conversations import DEFAULT_MODEL
from lowwater.cli.failing import say
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.store_flag import opened_store
from lowwater.core.accounts.cadence import turns_before
from lowwater.core.stored import Account, Listed
from lowwater.errors import BadInput, DamagedStore, LowwaterError
from lowwater.protocols import Store
from lowwater.session.library import Lowwater
from lowwater.session.plugins import is_policy
from lowwater.session.session import Session
from lowwater.settings import Settings

EMPTY = "no session is kept here yet: --store or LOWWATER_STORE name another place"

_MOST = 5


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
