"""Putting cache marks on a request's bytes, in each provider's way and never more than it takes."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.core.cache.marks import Marks, Seams, place_marks
from lowwater.core.formats.cache_marks import (
    break_item,
    break_message,
    carries_break,
    carries_mark,
    count_blocks,
    mark_chat_message,
    mark_content,
    mark_message,
    mark_tools,
    unbreak_item,
    unbreak_message,
    unmark_content,
    unmark_message,
)
from lowwater.core.formats.cache_marks import chat_carries_mark as carries_chat_mark
from lowwater.core.formats.cache_marks import count_responses_blocks as count_item_blocks
from lowwater.core.formats.cache_marks import responses_carries_break as carries_item_break

MOST_MARKS = 4
"""What Anthropic's API takes; at OpenAI the server's own mark is one of four."""

_MARK = b'"cache_control"'


class Marked(Struct, frozen=True, kw_only=True):
    """The parts of a request that carry marks."""

    messages: list[bytes]
    system: bytes
    tools: bytes


def with_marks(raws: Sequence[bytes], system: bytes, tools: bytes, *, marks: Marks, seams: Seams) -> Marked:
    """Return an Anthropic request with our marks instead of the client's.

    The mark before the messages stands on the system prompt, which covers the tools too; on the last tool where there is
    no system prompt, or one that keeps changing.
    """
    bare, system, tools = [unmark_message(raw) for raw in raws], unmark_content(system), unmark_content(tools)
    marked_system = mark_content(system, marks.ttl)
    marked_tools = mark_tools(tools, marks.ttl) if marked_system is None or seams.system_moves else None
    places = place_marks(
        [count_blocks(raw) for raw in bare],
        seams=seams,
        most=MOST_MARKS - (marked_system is not None or marked_tools is not None),
        lookback=marks.lookback,
        carries=lambda at: carries_mark(bare[at]),
    )
    for at in places:
        bare[at] = mark_message(bare[at], marks.ttl)
    if marked_tools is not None:
        return Marked(messages=bare, system=system, tools=marked_tools)
    return Marked(messages=bare, system=marked_system or system, tools=tools)


def with_chat_marks(raws: Sequence[bytes], *, first: int, marks: Marks, seams: Seams) -> list[bytes]:
    """Return chat messages with Anthropic's marks, on texts and where the router looks; the first `first` are the system prompt."""
    bare = [unmark_message(raw) for raw in raws]
    places = place_marks(
        [count_blocks(raw) for raw in bare[first:]],
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages,
        lookback=marks.lookback,
        carries=lambda at: carries_chat_mark(bare[first + at], on_tools=marks.on_tools),
    )
    for at in (*range(first), *(first + place for place in places)):
        bare[at] = mark_chat_message(bare[at], marks.ttl, on_tools=marks.on_tools)
    return bare


def with_breakpoints(raws: Sequence[bytes], *, first: int, marks: Marks, seams: Seams) -> list[bytes]:
    """Return chat messages with OpenAI's breakpoints: one on the system prompt, the others on messages, three in all.

    The fourth is the server's own. Stored ones are found without a mark at their place, so that none is spent on that.
    """
    bare = [unbreak_message(raw) for raw in raws]
    preamble = [at for at in range(first) if carries_break(bare[at])]
    places = place_marks(
        [count_blocks(raw) for raw in bare[first:]],
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages + 1 - len(preamble),
        lookback=marks.lookback,
        carries=lambda at: carries_break(bare[first + at]),
    )
    for at in (*preamble, *(first + place for place in places)):
        bare[at] = break_message(bare[at])
    return bare


def with_item_breakpoints(raws: Sequence[bytes], *, first: int, marks: Marks, seams: Seams) -> list[bytes]:
    """Return Responses items with OpenAI's breakpoints, as `with_breakpoints` puts them on chat messages.

    Instructions that stand apart from the items can carry none; items of the model cannot either.
    """
    bare = [unbreak_item(raw) for raw in raws]
    preamble = [at for at in range(first) if carries_item_break(bare[at])]
    places = place_marks(
        [count_item_blocks(raw) for raw in bare[first:]],
        seams=seams.moved(lambda at: at - first),
        most=marks.on_messages + 1 - len(preamble),
        lookback=marks.lookback,
        carries=lambda at: carries_item_break(bare[first + at]),
    )
    for at in (*preamble, *(first + place for place in places)):
        bare[at] = break_item(bare[at])
    return bare


def with_marks_left(raws: Sequence[bytes], system: bytes, tools: bytes) -> list[bytes]:
    """Return messages with the client's own marks, less the first ones if a repeated message made them too many."""
    over = sum(part.count(_MARK) for part in (system, tools, *raws)) - MOST_MARKS
    kept: list[bytes] = []
    for raw in raws:
        kept.append(unmark_message(raw) if over > 0 else raw)
        over -= raw.count(_MARK)
    return kept
