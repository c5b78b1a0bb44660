"""Finding a kept session by what a person typed: its name, or the beginning of it."""

from collections.abc import Sequence
from difflib import get_close_matches

from lowwater.cli.kept_session import EMPTY
from lowwater.cli.kept_words import on_one_line
from lowwater.errors import BadInput
from lowwater.ports import Store
from lowwater.values.ledger import Ledger
from lowwater.values.stored import Listed
from lowwater.wiring.home import Home

_MOST = 5


def named(known: Sequence[Listed], wanted: str) -> Listed:
    """Return the session of this name, or the only one whose name begins so, or raise a BadInput that names those like it."""
    if not known:
        raise BadInput(EMPTY)
    exact = next((each for each in known if each.name == wanted), None)
    if exact is not None:
        return exact
    begin = [each for each in known if wanted and each.name.startswith(wanted)]
    if len(begin) == 1:
        return begin[0]
    if begin:
        raise BadInput(f"{len(begin):,} sessions begin with {_quoted(wanted)}: {_several(begin)}")
    raise BadInput(f"there is no session {_quoted(wanted)}: {_near(known, wanted)}")


def exactly_named(known: Sequence[Listed], wanted: str) -> Listed:
    """Return the session of exactly this name, or raise a BadInput that names those like it."""
    exact = next((each for each in known if each.name == wanted), None)
    if exact is not None:
        return exact
    begin = [each for each in known if wanted and each.name.startswith(wanted)]
    if begin:
        raise BadInput(
            f"there is no session {_quoted(wanted)}: write the whole name, such as {_several(begin[:2])}"
        )
    return named(known, wanted)


def ledger_of(store: Store, name: str) -> Ledger:
    """Return the ledger of a session, or raise BadInput if it is gone meanwhile."""
    found = Home(name, store).find()
    if found is None:
        raise BadInput(f"the session {_quoted(name)} has just been deleted")
    return found.ledger


def _near(known: Sequence[Listed], wanted: str) -> str:
    sought = wanted.lower()
    names = [each.name for each in known]
    alike = [
        *get_close_matches(wanted, names, n=3),
        *(each.name for each in known if sought in each.name.lower() or sought in each.about.title.lower()),
    ]
    chosen = list(dict.fromkeys(alike))[:_MOST] if sought else []
    if chosen:
        return f"did you mean {' or '.join(map(_quoted, chosen))}"
    return f"the newest are {', '.join(map(_quoted, names[:3]))}"


def _several(known: Sequence[Listed]) -> str:
    more = f" and {len(known) - _MOST:,} more" if len(known) > _MOST else ""
    return ", ".join(_quoted(each.name) for each in known[:_MOST]) + more


def _quoted(name: str) -> str:
    return f"“{on_one_line(name, 60)}”"
