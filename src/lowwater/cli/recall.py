"""`lowwater recall`: finds messages of a stored session by words or by handle, including those no longer in view."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.padding import Padding
from rich.text import Text

from lowwater.cli.command import AsJson, say
from lowwater.cli.stored_sessions import (
    StoreAddress,
    command_line,
    complete_session,
    find_session,
    opened_store,
    print_command,
)
from lowwater.cli.tables import fields_of, page_width, print_json, print_page
from lowwater.cli.wording import fitted, on_one_line, printable
from lowwater.core.ledger import Ledger
from lowwater.core.recall.recalled import (
    Expansion,
    ExpansionLine,
    Recalled,
    RecalledMessage,
    names_messages,
    read_handle,
)
from lowwater.core.recall.search import count_messages as message_count
from lowwater.core.recall.search import first_line, widening, words_in
from lowwater.core.recall.search import recall as search_ledger
from lowwater.core.stored import Hit
from lowwater.core.wording import counted
from lowwater.errors import BadInput, DamagedStore
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.reopen import open_kept
from lowwater.session.session import Session

_INDENT = (0, 0, 0, 4)
_WHO = 26
"""Width of the column with the role."""
_FOUND_BY = "bold yellow"
_LIMIT = 5
_TOLD = ("handle", "number", "who", "tokens")


class FoundMessage(Struct, frozen=True, kw_only=True):
    """A message found, and its session."""

    session: str
    recalled: Recalled


def found_page(
    wanted: str, found: Sequence[FoundMessage], *, width: int, whole: bool, is_mixed: bool = False
) -> Iterator[Text | Padding]:
    """Yield each message with those around it: `whole` or one line of each, with the session's name if `is_mixed`."""
    if not found:
        yield Text(f"No message has any of these words: {on_one_line(wanted, 60)}")
    for index, each in enumerate(found):
        if index:
            yield Text()
        yield from _one(each, wanted, width, whole=whole, is_mixed=is_mixed)


def expansion_page(
    expansion: Expansion, messages: Sequence[Recalled], *, width: int, left: int
) -> Iterator[Text | Padding]:
    """Yield the content of a handle: the summary if it names one, then a line for each child, or whole messages."""
    children = counted(len(expansion.children) + left, "piece")
    yield Text.assemble((expansion.handle, "bold"), f" · {children}")
    if expansion.text:
        yield Text("\nsummary", style="bold")
        yield Padding(Text(printable(expansion.text)), _INDENT)
        yield Text("\nmade of", style="bold")
    if messages:
        for one in messages:
            yield Text()
            yield from _whole(one)
    else:
        yield from _children(expansion.children, width)
    if left:
        yield Text(f"{left:,} more: a higher --limit shows them", style="bright_black")


def found_json(wanted: str, found: Sequence[FoundMessage], *, whole: bool) -> dict[str, object]:
    """Return the messages found as JSON values; texts only if `whole`."""
    told = (*_TOLD, "text") if whole else _TOLD
    return {
        "wanted": wanted,
        "found": [
            {
                "session": each.session,
                **fields_of(each.recalled, *told, "excerpt", "tokens_with_near", "group"),
                "near": [fields_of(one, *told) for one in each.recalled.near],
            }
            for each in found
        ],
    }


def expansion_json(expansion: Expansion, messages: Sequence[Recalled]) -> dict[str, object]:
    """Return the content of a handle as JSON values."""
    return {
        "handle": expansion.handle,
        "summary": expansion.text,
        "children": expansion.children,
        "messages": [fields_of(one, *_TOLD, "text") for one in messages],
    }


def _one(
    found: FoundMessage, wanted: str, width: int, *, whole: bool, is_mixed: bool
) -> Iterator[Text | Padding]:
    one = found.recalled
    before = [near for near in one.near if near.number < one.number]
    after = [near for near in one.near if near.number > one.number]
    with_near = f", {one.tokens_with_near:,} with what is around it" if one.near else ""
    session = f"{on_one_line(found.session, 200)} · " if is_mixed else ""
    yield Text.assemble(
        (f"{session}{one.handle}", "bold"),
        f" · {on_one_line(one.who, 60)} · {counted(one.tokens, 'token')}{with_near}",
    )
    yield from _around(before, width)
    text = Text(printable(one.text) if whole else on_one_line(one.excerpt, 300))
    if not names_messages(wanted):
        text.highlight_words(words_in(wanted), _FOUND_BY, case_sensitive=False)
    yield Padding(text, _INDENT)
    yield from _around(after, width)


def _whole(one: RecalledMessage) -> Iterator[Text | Padding]:
    yield Text.assemble(
        (one.handle, "bold"), f" · {on_one_line(one.who, 60)} · {counted(one.tokens, 'token')}"
    )
    yield Padding(Text(printable(one.text)), _INDENT)


def _around(near: Sequence[RecalledMessage], width: int) -> Iterator[Text]:
    for one in near:
        said = first_line(one.text)
        yield _line(one.handle, one.who, one.tokens, said=said, width=width, style="bright_black")


def _children(children: Sequence[ExpansionLine], width: int) -> Iterator[Text]:
    for child in children:
        who = child.who if child.kind == "message" else f"summary of {child.messages:,}"
        yield _line(child.handle, who, child.tokens, said=child.first_line, width=width)


def _line(handle: str, who: str, tokens: int, *, said: str, width: int, style: str = "") -> Text:
    """Return a message on one line of at most the terminal's width."""
    line = f"{handle:<8}  {fitted(on_one_line(who, 60), _WHO)}  {tokens:>6,}  {on_one_line(said, 200)}"
    return Text(fitted(line, width).rstrip(), style=style)


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
        list[str] | None, typer.Argument(metavar="WORDS…|HANDLE", help="Words to look for, or a handle.")
    ] = None,
    *,
    around: Annotated[
        int, typer.Option(metavar="N", min=0, max=50, help="Messages to show before and after.")
    ] = 1,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help=f"Show at most so many; {_LIMIT} for words.")
    ] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Show whole messages instead of a line of each.")
    ] = False,
    everywhere: Annotated[bool, typer.Option("--all", help="Search all sessions.")] = False,
    store: StoreAddress = "",
    json: AsJson = False,
) -> None:
    """Find messages of a session, including those no longer in view.

    Words find the messages that contain most of them, shown with their
    neighbours and sizes in tokens. A handle such as lw:412, as found in
    placeholders, gives that message. A range such as lw:12-408 gives those
    messages; if a summary replaced them, the summary and what it was made
    from, level by level.

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
            if (
                is_handle
                and message_count(read_handle(wanted, of=len(internals(session).ledger.messages))) > 1
            ):
                _print_range(session, wanted, limit, whole=expand, json=json)
                return
            recalled = session.recall(wanted, limit=limit or _LIMIT, near=around)
            found = [FoundMessage(session=session.name, recalled=each) for each in recalled]
    whole = expand or is_handle
    if json:
        print_json(found_json(wanted, found, whole=whole))
        return
    print_page(found_page(wanted, found, width=page_width(), whole=whole, is_mixed=everywhere))
    if found and not whole:
        first = ["recall", found[0].session, found[0].recalled.handle]
        print_command("The first one whole:", command_line(first, store=store))


def _everywhere(store: Store, words: str, around: int, limit: int) -> Iterator[FoundMessage]:
    """Yield the best matches of all sessions, best first, without earlier answers of recall itself."""
    opened: dict[str, Ledger | None] = {}
    for hit in widening(lambda most: store.search(words, limit=most), limit):
        if hit.session not in opened:
            opened[hit.session] = _ledger(store, hit.session)
        ledger = opened[hit.session]
        if ledger is not None:
            only = partial(_only, hit)
            for each in search_ledger(ledger, words, search=only, limit=1, near=around):
                yield FoundMessage(session=hit.session, recalled=each)


def _only(hit: Hit, _words: str, _limit: int) -> Sequence[Hit]:
    return (hit,)


def _ledger(store: Store, session: str) -> Ledger | None:
    """Return a session's ledger; if it cannot be read, report that on standard error and continue."""
    try:
        return internals(open_kept(store, find_session(store, session))).ledger
    except DamagedStore as error:
        say(f"warning: left out: {error}")
        return None


def _print_range(session: Session, handle: str, limit: int | None, *, whole: bool, json: bool) -> None:
    """Print the content of a handle of several messages, in full if `whole`."""
    expansion = internals(session).expand(handle)
    shown = replace(expansion, children=expansion.children[:limit])
    messages = session.recall(handle)[:limit] if whole else []
    if json:
        print_json(expansion_json(shown, messages))
    else:
        left = len(expansion.children) - len(shown.children)
        print_page(expansion_page(shown, messages, width=page_width(), left=left))
