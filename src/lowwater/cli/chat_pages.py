"""The pages that slash commands of `lowwater chat` show of the session that is talked in."""

import time
from collections.abc import Iterator
from itertools import islice

from rich.console import RenderableType
from rich.text import Text

from lowwater.adapters.models import load_registry
from lowwater.cli import efficiency_page, status_page
from lowwater.cli.checkpoints import checkpoint_named, checkpoints_page
from lowwater.cli.difference_page import difference_lines
from lowwater.cli.fill import draw
from lowwater.cli.kept_session import all_accounts
from lowwater.cli.kept_words import on_one_line
from lowwater.cli.printing import page_width
from lowwater.cli.recall_page import Found, expansion_page, found_page
from lowwater.cli.sessions.listing import rows_of
from lowwater.cli.sessions.listing_table import narrow_table
from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.contents import contents
from lowwater.core.accounts.difference import difference
from lowwater.core.accounts.efficiency import efficiency
from lowwater.core.recall.recalled import names_messages, read_handle
from lowwater.core.recall.search import counted as counted_in
from lowwater.core.tokens.counting import count_parts, count_preamble
from lowwater.core.wording import counted
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.session.factories import counter_for
from lowwater.session.session import Session

_SHOWN = 15
Page = Iterator[RenderableType]


def status(session: Session, store: Store) -> Page:
    """Yield the session in numbers."""
    accounts = store.accounts([session.name])
    if not accounts:
        yield Text("Nothing was said yet.")
        return
    registry = load_registry()
    looked = status_page.Looked(
        account=accounts[0],
        status=session.status(),
        model=registry.find(session.route.model),
        efficiency=efficiency(accounts, registry),
        cadence=cadence(accounts),
    )
    yield from status_page.page(looked, width=page_width(), now=time.time())


def all_efficiency(store: Store) -> Page:
    """Yield what all kept sessions cost, and what the numbers recommend."""
    accounts = all_accounts(store)
    if not accounts:
        yield Text("Nothing was said yet.")
        return
    found = efficiency(accounts, load_registry())
    yield from efficiency_page.page(found, cadence(accounts), since=None, width=page_width())


def context(session: Session) -> Page:
    """Yield what fills the window, as a bar with its legend; sizes in the model's tokens."""
    view, scale = session.ledger.view, session.scale
    tokenizer = counter_for(session.route.model)
    messages = view.messages
    filled = contents(
        messages,
        [[round(scale * tokens) for tokens in count_parts(message, tokenizer)] for message in messages],
        system_tokens=round(scale * count_preamble(view.system, b"", tokenizer)),
        tool_tokens=round(scale * count_preamble(b"", view.tools, tokenizer)),
    )
    window = session.status().context
    title = f"{filled.tokens:,} tokens in {counted(filled.messages, 'message')}"
    yield Text(
        f"{title} · {filled.tokens / window:.0%} of the {window:,} of {session.route.model}", style="bold"
    )
    yield from draw(filled, window, min(page_width(), 100))


def checkpoints(session: Session) -> Page:
    """Yield where the session can go back to."""
    found = session.checkpoints()
    if not found:
        yield Text("There is none yet: a compaction makes one by itself, /checkpoints NAME names this place.")
        return
    yield from checkpoints_page(session, found, page_width())


def rewound(session: Session, to: str) -> Page:
    """Go back to a checkpoint, or without one to before the last compaction; yield what that changed."""
    if not to:
        own = [each.name for each in session.checkpoints() if each.name.startswith("before-compaction-")]
        if not own:
            raise BadInput(
                "there is no compaction to undo: /checkpoints lists where the session can go back to"
            )
        to = own[-1]
    place = checkpoint_named(session, to)
    before = session.ledger.view
    session.rewind(place.position)
    yield Text.assemble("Rewound to ", (on_one_line(place.name, 200), "bold"))
    yield from difference_lines(difference(before, session.ledger.view))
    yield Text(f"/rewind {session.checkpoints()[-1].name} takes it back.", style="bright_black")


def recalled(session: Session, wanted: str) -> Page:
    """Yield messages by words or by handle, those the model is no longer shown included."""
    if not wanted:
        raise BadInput("there is nothing to look for: /recall WORDS, or a handle such as /recall lw:12")
    is_handle = names_messages(wanted)
    if is_handle and counted_in(read_handle(wanted, of=len(session.ledger.messages))) > 1:
        yield from expansion_page(session.expand(wanted), (), width=page_width(), left=0)
        return
    found = [Found(session=session.name, recalled=each) for each in session.recall(wanted)]
    yield from found_page(wanted, found, width=page_width(), whole=is_handle)


def sessions(store: Store, current: str) -> Page:
    """Yield the newest sessions that are kept."""
    known = store.sessions()
    if not known:
        yield Text("No session is kept yet.")
        return
    chosen = list(islice(known, _SHOWN))
    yield narrow_table(rows_of(store, chosen), time.time(), page_width())
    more = f"{len(known) - len(chosen):,} older ones are not shown; " if len(known) > len(chosen) else ""
    yield Text(
        f"{more}this one is {on_one_line(current, 200)}; /resume NAME goes on with another",
        style="bright_black",
    )
