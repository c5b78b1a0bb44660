"""What a recall tool answers: matches as a list, originals in full, summaries one level down; always within its room."""

from collections.abc import Iterator, Sequence

from lowwater.engine.recall.answered import results_of, show_call
from lowwater.engine.recall.arguments import ExpandTo, SearchFor
from lowwater.engine.recall.around import show_around
from lowwater.engine.recall.cutting import Block, Count, fill, fitting
from lowwater.engine.recall.expanding import OpenedHandle, children_of, open_handle, read_messages
from lowwater.engine.recall.finding import Search, find
from lowwater.engine.recall.handles import clipped, handle_of, is_handle
from lowwater.engine.recall.lineage import shown
from lowwater.engine.recall.matching import first_line
from lowwater.engine.recall.ranges import counted, without
from lowwater.engine.recall.showing import caption, part_of, show
from lowwater.errors import BadInput
from lowwater.values.entries import Numbers
from lowwater.values.ledger import Ledger
from lowwater.values.recalled import Child, Recalled
from lowwater.values.view import Original

_BESIDE = 4
"""Neighbours of a match that are named."""
_BESIDE_WIDTH = 80
_SUMMARY_SHARE = 0.5
"""Of the room, for what a summary says that is no longer in the view."""


def tell_search(
    ledger: Ledger, asked: SearchFor, search: Search | None, tokens: int, count: Count
) -> str | None:
    """Return the matches, each with an excerpt and its neighbours, as many as fit; None if not even one does.

    Those that the view shows as they were come last and are marked: they need no recall.
    """
    if is_handle(asked.query):
        raise BadInput(f"{clipped(asked.query)} is a handle: give it to lowwater_expand")
    visible = {item.number for item in ledger.view.items if isinstance(item, Original)}
    # Where nothing was compacted there is nothing to prefer, and no reason to look any further.
    last = visible if len(visible) < len(ledger.messages) else ()
    found = list(find(ledger, asked.query, search=search, limit=asked.limit, last=last))
    if not found:
        raise BadInput(
            f"no message has any of the words of {clipped(asked.query)}: "
            "try other words, such as a file name, an identifier or part of an error message"
        )

    is_mixed = len({one.number in visible for one in found}) > 1

    def frame(text: str, shown: int, left: int | None) -> str:
        head = f"{shown} of {len(found)} matches" if left is not None else f"{len(found)} matches"
        order = "best first, those in view last" if is_mixed else "best first"
        return f"[{head}, {order} · read one with lowwater_expand and its handle]\n{text}"

    return fill((_match(ledger, one, in_view=one.number in visible) for one in found), tokens, count, frame)


def tell_expand(ledger: Ledger, asked: ExpandTo, tokens: int, count: Count) -> str | None:
    """Return what a handle leads to, as much as fits; None if nothing does."""
    opened = open_handle(ledger, asked.handle)
    numbers = opened.numbers
    if counted(numbers) == 1:
        return _one(ledger, asked, numbers, tokens, count)
    if asked.around:
        return show_around(ledger, numbers, asked.around, tokens, count)
    if asked.lines or asked.characters:
        raise BadInput(
            f"lines and characters count within one message: give a handle such as lw:{numbers[0].first}"
        )
    return _in_full(ledger, opened, tokens, count) or _listed(ledger, opened, tokens, count)


def _one(
    ledger: Ledger, asked: ExpandTo, numbers: Sequence[Numbers], tokens: int, count: Count
) -> str | None:
    """Return one message, or the part of it that was asked for; a call comes with its results."""
    (one,) = read_messages(ledger, numbers)
    is_whole = not (asked.lines or asked.characters)
    results = results_of(ledger.messages, one) if is_whole else []
    if asked.around:
        answers = (Numbers(first=each.number, last=each.number) for each in results)
        return show_around(ledger, (*numbers, *answers), asked.around, tokens, count)
    if results and (told := show_call(ledger.messages, one, results, tokens, count)) is not None:
        return told
    part = part_of(one, lines=asked.lines, characters=asked.characters)
    return show(one, caption(ledger.messages, one), part, tokens, count)


def _match(ledger: Ledger, one: Recalled, *, in_view: bool) -> Block[int]:
    said = f"{caption(ledger.messages, one)}{' · in view' if in_view else ''}"
    nearest = sorted(one.near, key=lambda told: abs(told.number - one.number))[:_BESIDE]
    beside = [
        f"  beside it {told.handle} · {told.who} · {told.tokens:,} tokens · {first_line(told.text, _BESIDE_WIDTH)}"
        for told in sorted(nearest, key=lambda told: told.number)
    ]
    return Block(text="\n".join([said, f"  {one.excerpt}", *beside]), about=one.number)


def _in_full(ledger: Ledger, opened: OpenedHandle, tokens: int, count: Count) -> str | None:
    """Return all messages word for word if that is one level down and fits; else None."""
    if opened.made_of:
        return None
    pages: list[str] = []
    room = tokens
    for told in read_messages(ledger, opened.numbers):
        room -= told.tokens
        if room < 0:
            return None
        pages.append(f"[{caption(ledger.messages, told)}]\n{told.text}")
    text = "\n\n".join(pages)
    return text if count(text) <= tokens else None


def _listed(ledger: Ledger, opened: OpenedHandle, tokens: int, count: Count) -> str | None:
    head = _head(ledger, opened, int(_SUMMARY_SHARE * tokens), count)

    def frame(text: str, _: int, left: int | None) -> str:
        return f"{head}\n{text}{_rest(opened.numbers, left)}"

    return fill(_lines(children_of(ledger, opened)), tokens, count, frame)


def _head(ledger: Ledger, opened: OpenedHandle, tokens: int, count: Count) -> str:
    handle = handle_of(opened.numbers)
    if opened.summary is None:
        messages = counted(opened.numbers)
        return f"[{handle} · {messages:,} messages, one line each · expand the handle of one to read it]"
    what = f"[{handle} · summary of {counted(opened.summary.sources):,} messages]"
    below = "[it was made of these · expand the handle of one to read it]"
    if any(one.summary == opened.summary for one in shown(ledger)):
        return f"{what}\n{below}"
    end = fitting(opened.text, 0, len(opened.text), tokens, count)
    cut = "" if end == len(opened.text) else "\n[the summary goes on]"
    return f"{what}\n{opened.text[:end]}{cut}\n{below}"


def _lines(children: Iterator[Child]) -> Iterator[Block[int]]:
    for child in children:
        what = f"summary of {child.messages:,} messages" if child.kind == "summary" else child.who
        line = f"{child.handle} · {what} · {child.tokens:,} tokens · {child.first_line}"
        yield Block(text=line, about=child.sources[0].first)


def _rest(numbers: Sequence[Numbers], left: int | None) -> str:
    if left is None:
        return ""
    rest = tuple(without(numbers, (Numbers(first=1, last=left - 1),)))
    return f"\n[{counted(rest):,} more messages follow: expand {handle_of(rest)}]"
