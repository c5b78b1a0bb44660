"""Finding a kept session by its whole name, for commands that delete."""

from collections.abc import Sequence

from lowwater.cli.kept_session import named, quoted, several
from lowwater.core.ledger import Ledger
from lowwater.core.stored import Listed
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session.repository import Home


def exactly_named(known: Sequence[Listed], wanted: str) -> Listed:
    """Return the session of exactly this name, or raise a BadInput that names those like it."""
    exact = next((each for each in known if each.name == wanted), None)
    if exact is not None:
        return exact
    begin = [each for each in known if wanted and each.name.startswith(wanted)]
    if begin:
        raise BadInput(
            f"there is no session {quoted(wanted)}: write the whole name, such as {several(begin[:2])}"
        )
    return named(known, wanted)


def ledger_of(store: Store, name: str) -> Ledger:
    """Return the ledger of a session, or raise BadInput if it is gone meanwhile."""
    found = Home(name, store).find()
    if found is None:
        raise BadInput(f"the session {quoted(name)} has just been deleted")
    return found.ledger
