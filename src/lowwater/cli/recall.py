"""`lowwater recall`: getting back what a kept session no longer shows, by words or by handle."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated

import typer
from msgspec.structs import replace

from lowwater.cli.failing import say
from lowwater.cli.kept_session import complete_session, find_session, open_kept
from lowwater.cli.printing import command_line, page_width, print_command, print_json, print_page
from lowwater.cli.recall_page import Found, expansion_page, expansion_said, found_page, found_said
from lowwater.cli.store_flag import StoreAddress, opened_store
from lowwater.core.ledger import Ledger
from lowwater.core.recall.recalled import names_messages, read_handle
from lowwater.core.recall.search import counted, widening
from lowwater.core.recall.search import recall as recall_from
from lowwater.core.stored import Hit
from lowwater.errors import BadInput, DamagedStore
from lowwater.protocols import Store
from lowwater.session.session import Session

_LIMIT = 5


def recall(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A kept session; with --all, the first word.",
            autocompletion=complete_session,
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS…|HANDLE", help="Words to look for, or a handle.", show_default=False),
    ] = None,
    *,
    around: Annotated[
        int, typer.Option(metavar="N", min=0, max=50, help="Messages to show before and after.")
    ] = 1,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help=f"Show at most so many; {_LIMIT} for words.", show_default=False
        ),
    ] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Show whole messages instead of a line of each.")
    ] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Search all sessions.")] = False,
    store: StoreAddress = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text.")] = False,
) -> None:
    """Find messages of a session, those it no longer shows to its model included, and read them whole.

    Words find the messages that have most of them, with what stands around
    each and sizes in tokens. A handle such as lw:412, as placeholders carry
    them, gives the message. A range such as lw:12-408 gives the messages, and
    if it is what a summary stands for, the summary and what it was made of,
    level by level.

    lowwater recall refactor-auth pytest failure in test_auth
    lowwater recall refactor-auth lw:412 --around 3
    lowwater recall refactor-auth lw:12-408
    lowwater recall --all "certificate expired" --limit 20
    """
    wanted = " ".join([name, *(words or ())] if everywhere else (words or ())).strip()
    if not wanted:
        raise BadInput("there is nothing to look for: give words, or a handle such as lw:412")
    is_handle = names_messages(wanted)
    if everywhere and is_handle:
        raise BadInput(f"the handle {wanted} belongs to one session: name that session instead of --all")
    with opened_store(store) as opened:
        if everywhere:
            found = list(islice(_everywhere(opened, wanted, around, limit or _LIMIT), limit or _LIMIT))
        else:
            session = open_kept(opened, find_session(opened, name))
            if is_handle and counted(read_handle(wanted, of=len(session.ledger.messages))) > 1:
                _print_range(session, wanted, limit, whole=expand, json=json)
                return
            recalled = session.recall(wanted, limit=limit or _LIMIT, near=around)
            found = [Found(session=session.name, recalled=each) for each in recalled]
    whole = expand or is_handle
    if json:
        print_json(found_said(wanted, found, whole=whole))
        return
    print_page(found_page(wanted, found, width=page_width(), whole=whole, is_mixed=everywhere))
    if found and not whole:
        first = ["recall", found[0].session, found[0].recalled.handle]
        print_command("The first one whole:", command_line(first, store=store))


def _everywhere(store: Store, words: str, around: int, limit: int) -> Iterator[Found]:
    """Yield the messages of all sessions that match best, best first; what recall itself once answered is left out."""
    opened: dict[str, Ledger | None] = {}
    for hit in widening(lambda most: store.search(words, limit=most), limit):
        if hit.session not in opened:
            opened[hit.session] = _ledger(store, hit.session)
        ledger = opened[hit.session]
        if ledger is not None:
            only = partial(_only, hit)
            for each in recall_from(ledger, words, search=only, limit=1, near=around):
                yield Found(session=hit.session, recalled=each)


def _only(hit: Hit, _words: str, _limit: int) -> Sequence[Hit]:
    return (hit,)


def _ledger(store: Store, session: str) -> Ledger | None:
    """Return a session's ledger; one that cannot be read is named on standard error and does not hide the others."""
    try:
        return open_kept(store, find_session(store, session)).ledger
    except DamagedStore as error:
        say(f"warning: left out: {error}")
        return None


def _print_range(session: Session, handle: str, limit: int | None, *, whole: bool, json: bool) -> None:
    """Print what a handle of several messages leads to, or all of them if `whole` messages are wanted."""
    expansion = session.expand(handle)
    shown = replace(expansion, children=expansion.children[:limit])
    messages = session.recall(handle)[:limit] if whole else []
    if json:
        print_json(expansion_said(shown, messages))
    else:
        left = len(expansion.children) - len(shown.children)
        print_page(expansion_page(shown, messages, width=page_width(), left=left))
