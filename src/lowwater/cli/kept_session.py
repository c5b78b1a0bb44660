"""Finding kept sessions, for the commands that look at one or at all of them."""

from collections.abc import Sequence
from difflib import get_close_matches

from msgspec.structs import replace

from lowwater.account.timeline import turns_before
from lowwater.cli.conversations import DEFAULT_MODEL
from lowwater.cli.failing import say
from lowwater.cli.kept_words import on_one_line
from lowwater.errors import BadInput, DamagedStore
from lowwater.ports import Store
from lowwater.values.settings import Settings
from lowwater.values.stored import Account, Listed
from lowwater.wiring.library import Lowwater
from lowwater.wiring.plugins import is_policy
from lowwater.wiring.session import Session

EMPTY = "no session is kept here yet: --store or LOWWATER_STORE name another place"


def find_session(store: Store, name: str) -> Listed:
    """Return the session of this name, or raise a BadInput that names those like it."""
    known = store.sessions()
    found = next((each for each in known if each.name == name), None)
    if found is None:
        raise BadInput(_missing(name, known))
    return found


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


def _missing(name: str, known: Sequence[Listed]) -> str:
    if not known:
        return EMPTY
    close = get_close_matches(name, [each.name for each in known], n=3)
    named = (
        f"did you mean {' or '.join(map(_quoted, close))}?"
        if close
        else f"the newest is {_quoted(known[0].name)}"
    )
    return f"there is no session {_quoted(name)}: {named}"


def _quoted(name: str) -> str:
    return f"“{on_one_line(name, 60)}”"
