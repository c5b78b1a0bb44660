"""The recall tools for the model: reading the arguments of a call and writing its answer, within a number of tokens.

The model reads every sentence here, errors included: they say what to change in the next call.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, cast

import msgspec
from msgspec import Struct

from lowwater.core.entries import Numbers
from lowwater.core.events import Compaction
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.recall.expand import (
    AnswerBlock,
    CountTokens,
    OpenedHandle,
    caption,
    children_of,
    end_within,
    fill,
    open_handle,
    part_of,
    recalled_by_number,
    show,
    show_around,
    summaries_in_view,
)
from lowwater.core.recall.recalled import (
    MOST_WANTED,
    ExpansionLine,
    Recalled,
    RecalledMessage,
    clipped,
    handle_of,
    is_handle,
)
from lowwater.core.recall.search import (
    MOST_HITS,
    Search,
    count_messages,
    find_messages,
    first_line,
    group_of,
    recalled_messages,
    subtract,
)
from lowwater.core.tools import COMPACT, EXPAND, PIN, SEARCH, is_recall
from lowwater.core.view import Original
from lowwater.errors import BadInput

# Arguments

_LONGEST = 4_000
_EXAMPLES = {"handle": "lw:412", "text": "Answer in German."}
_PAIR = re.compile(r"\s*\[?\s*([0-9]{1,15})(?:\s*[-–,:]\s*([0-9]{1,15}))?\s*\]?\s*")


class SearchArguments(Struct, frozen=True, kw_only=True):
    """The arguments of `lowwater_search`."""

    query: str
    limit: int


class ExpandArguments(Struct, frozen=True, kw_only=True):
    """The arguments of `lowwater_expand`; at most one of the last three is given."""

    handle: str
    around: str = ""
    lines: Numbers | None = None
    characters: Numbers | None = None


class PinArguments(Struct, frozen=True, kw_only=True):
    """The arguments of `lowwater_pin`."""

    text: str


class CompactArguments(Struct, frozen=True, kw_only=True):
    """The arguments of `lowwater_compact`."""

    focus: str = ""


AnyArguments: TypeAlias = SearchArguments | ExpandArguments | PinArguments | CompactArguments


def read_recall_arguments(name: str, arguments: object) -> AnyArguments:
    """Return the arguments of a tool call, or raise BadInput."""
    if not is_recall(name):
        raise BadInput(f"there is no tool {clipped(name)}: use {SEARCH}, {EXPAND} or {PIN}")
    fields = _fields(arguments)
    if name.endswith(SEARCH):
        _only(fields, SEARCH, "query", "limit")
        return SearchArguments(query=_text(fields, "query", SEARCH), limit=_limit(fields.get("limit")))
    if name.endswith(PIN):
        _only(fields, PIN, "text")
        return PinArguments(text=_text(fields, "text", PIN))
    if name.endswith(COMPACT):
        _only(fields, COMPACT, "focus")
        return CompactArguments(focus=_text(fields, "focus", COMPACT) if "focus" in fields else "")
    _only(fields, EXPAND, "handle", "around", "lines", "characters")
    if len(fields.keys() & {"around", "lines", "characters"}) > 1:
        raise BadInput("give only one of around, lines and characters")
    return ExpandArguments(
        handle=_text(fields, "handle", EXPAND),
        around=_text(fields, "around", EXPAND) if "around" in fields else "",
        lines=_pair(fields, "lines"),
        characters=_pair(fields, "characters"),
    )


def _fields(arguments: object) -> dict[str, object]:
    """Return the arguments that were given; null counts as not given."""
    if isinstance(arguments, str | bytes):
        try:
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise BadInput("the arguments are no valid JSON: send one object and nothing else") from None
    if not isinstance(arguments, Mapping):
        raise BadInput('the arguments must be one JSON object, such as {"handle": "lw:412"}')
    given = cast(Mapping[object, object], arguments)
    return {str(name): value for name, value in given.items() if value is not None}


def _only(fields: Mapping[str, object], tool: str, *known: str) -> None:
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise BadInput(f"{tool} has no argument {clipped(unknown)}: it takes {', '.join(known)}")


def _text(fields: Mapping[str, object], name: str, tool: str) -> str:
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 10**15 else ""
    if not isinstance(value, str) or not value.strip():
        example = _EXAMPLES.get(name, "words to look for")
        raise BadInput(f'{tool} needs {name} as text: send {{"{name}": "{example}"}}')
    if len(value) > _LONGEST:
        raise BadInput(f"{name} has {len(value):,} characters: shorten it to a few words")
    return value


def _limit(value: object) -> int:
    if value is None:
        return MOST_HITS
    number = _number(value)
    if number is None or number < 1:
        raise BadInput(f"limit must be a whole number from 1 to {MOST_WANTED}")
    return min(number, MOST_WANTED)


def _pair(fields: Mapping[str, object], name: str) -> Numbers | None:
    if name not in fields:
        return None
    value = fields[name]
    numbers: list[int | None] = [None]
    if isinstance(value, str) and (found := _PAIR.fullmatch(value)):
        numbers = [int(found[1]), int(found[2] or found[1])]
    elif isinstance(value, list | tuple) and len(value) in (1, 2):
        numbers = [_number(value[0]), _number(value[-1])]
    elif not isinstance(value, str):
        numbers = [_number(value)] * 2
    first, last = numbers[0], numbers[-1]
    if first is None or last is None or not 1 <= first <= last:
        raise BadInput(
            f"{name} must be two whole numbers, the first and the last one wanted, such as [1, 200]"
        )
    return Numbers(first=first, last=last)


def _number(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case str() if re.fullmatch(r"\s*[0-9]{1,15}\s*", value):
            return int(value)
        case _:
            return None


# The answer to a compaction


def answer_compact(done: Compaction | None) -> str:
    """Return what a compaction removed, and what it costs."""
    if done is None:
        return "Nothing compacted: what could go is too little, or protected."
    parts = [f"{phase.mechanism} {phase.removed:,}" for phase in done.phases if phase.removed > 0]
    by = f" ({', '.join(parts)})" if parts else ""
    words = [
        f"Compacted: the prompt goes from about {done.before:,} to {max(0, done.after):,} tokens, {done.reclaimed:,} removed{by}."
    ]
    if done.price is not None and done.saves is not None:
        words.append(f"It costs {_money(done.price)} and saves {_money(done.saves)} at each later call.")
    else:
        words.append("Its price is not known, because the model has none here.")
    words.append("Everything is still there: lowwater_search finds it, and handles in the view lead to it.")
    return " ".join(words)


def _money(nano_dollars: int) -> str:
    return f"${nano_dollars / 1e9:,.4f}"


# The answer to a search

_MOST_NEIGHBOURS = 4
"""How many neighbours of a match are listed."""
_NEIGHBOUR_WIDTH = 80


def answer_search(
    ledger: Ledger, asked: SearchArguments, search: Search | None, tokens: int, count: CountTokens
) -> str | None:
    """Return the matches, each with an excerpt and its neighbours, as many as fit; None if not even one does.

    Messages that the view shows unchanged come last and are marked: they need no recall.
    """
    if is_handle(asked.query):
        raise BadInput(f"{clipped(asked.query)} is a handle: give it to lowwater_expand")
    visible = {item.number for item in ledger.view.items if isinstance(item, Original)}
    # If nothing was compacted, everything is in view and there is nothing to prefer.
    last = visible if len(visible) < len(ledger.messages) else ()
    found = list(find_messages(ledger, asked.query, search=search, limit=asked.limit, last=last))
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


def _match(ledger: Ledger, one: Recalled, *, in_view: bool) -> AnswerBlock[int]:
    heading = f"{caption(ledger.messages, one)}{' · in view' if in_view else ''}"
    nearest = sorted(one.near, key=lambda near: abs(near.number - one.number))[:_MOST_NEIGHBOURS]
    beside = [
        f"  beside it {near.handle} · {near.who} · {near.tokens:,} tokens · {first_line(near.text, _NEIGHBOUR_WIDTH)}"
        for near in sorted(nearest, key=lambda near: near.number)
    ]
    return AnswerBlock(text="\n".join([heading, f"  {one.excerpt}", *beside]), about=one.number)


# The answer to an expansion

_SUMMARY_SHARE = 0.5
"""The share of the room for the text of a summary that is no longer in the view."""


def answer_expand(ledger: Ledger, asked: ExpandArguments, tokens: int, count: CountTokens) -> str | None:
    """Return what a handle expands to, as much as fits; None if nothing does."""
    opened = open_handle(ledger, asked.handle)
    numbers = opened.numbers
    if count_messages(numbers) == 1:
        return _one(ledger, asked, numbers, tokens, count)
    if asked.around:
        return show_around(ledger, numbers, asked.around, tokens, count)
    if asked.lines or asked.characters:
        raise BadInput(
            f"lines and characters count within one message: give a handle such as lw:{numbers[0].first}"
        )
    return _in_full(ledger, opened, tokens, count) or _listed(ledger, opened, tokens, count)


def _one(
    ledger: Ledger, asked: ExpandArguments, numbers: Sequence[Numbers], tokens: int, count: CountTokens
) -> str | None:
    """Return one message, or the wanted part of it; a call comes with its results."""
    (one,) = recalled_by_number(ledger, numbers)
    is_whole = not (asked.lines or asked.characters)
    retracted = ledger.retracted()
    results = [
        each
        for each in (results_of(ledger.messages, one) if is_whole else ())
        if each.number not in retracted
    ]
    if asked.around:
        answers = (Numbers(first=each.number, last=each.number) for each in results)
        return show_around(ledger, (*numbers, *answers), asked.around, tokens, count)
    if results and (answer := show_call(ledger.messages, one, results, tokens, count)) is not None:
        return answer
    part = part_of(one, lines=asked.lines, characters=asked.characters)
    return show(one, caption(ledger.messages, one), part, tokens, count)


def results_of(messages: Sequence[Numbered], one: RecalledMessage) -> list[RecalledMessage]:
    """Return the messages with the results of a message's calls, if they are near; none if it calls nothing."""
    wanted = {call.id for call in one.message.calls}
    if not wanted:
        return []
    last = group_of(messages, one.number).last
    if last == one.number:
        return []
    later = recalled_messages(messages, Numbers(first=one.number + 1, last=last))
    return [each for each in later if any(result.call_id in wanted for result in each.message.results)]


def show_call(
    messages: Sequence[Numbered],
    one: RecalledMessage,
    results: Sequence[RecalledMessage],
    tokens: int,
    count: CountTokens,
) -> str | None:
    """Return a call under its caption, followed by the results that fit, in order; the caption names the others.

    Returns None if there is no room for the call and these names.
    """
    named = list(results)
    pages: list[str] = []
    shown = _call(messages, one, named, tokens, count)
    if shown is None:
        return None
    for each in results:
        page = f"[{caption(messages, each)}]\n{each.text}"
        rest = [other for other in named if other is not each]
        # A call that was cut says how to go on in its last line, and has left no room anyway.
        whole = f"[{_call_caption(messages, one, rest)}]\n{one.text}"
        text = "\n\n".join([whole, *pages, page])
        if each.tokens <= tokens and count(text) <= tokens:
            named, shown = rest, text
            pages.append(page)
    return shown


def _call(
    messages: Sequence[Numbered],
    one: RecalledMessage,
    named: Sequence[RecalledMessage],
    tokens: int,
    count: CountTokens,
) -> str | None:
    part = part_of(one, lines=None, characters=None)
    return show(one, _call_caption(messages, one, named), part, tokens, count)


def _call_caption(
    messages: Sequence[Numbered], one: RecalledMessage, named: Sequence[RecalledMessage]
) -> str:
    """Return the caption of a call, with the handles of its results that are not shown."""
    listed = ", ".join(f"{each.handle} ({each.tokens:,} tokens)" for each in named)
    what = "result" if len(named) == 1 else "results"
    return caption(messages, one) + (f" · {what} in {listed}" if named else "")


def _in_full(ledger: Ledger, opened: OpenedHandle, tokens: int, count: CountTokens) -> str | None:
    """Return all messages word for word if they are one level down and fit; else None."""
    if opened.made_of:
        return None
    pages: list[str] = []
    room = tokens
    for found in recalled_by_number(ledger, opened.numbers):
        room -= found.tokens
        if room < 0:
            return None
        pages.append(f"[{caption(ledger.messages, found)}]\n{found.text}")
    text = "\n\n".join(pages)
    return text if count(text) <= tokens else None


def _listed(ledger: Ledger, opened: OpenedHandle, tokens: int, count: CountTokens) -> str | None:
    head = _head(ledger, opened, int(_SUMMARY_SHARE * tokens), count)

    def frame(text: str, _: int, left: int | None) -> str:
        return f"{head}\n{text}{_rest(opened.numbers, left)}"

    return fill(_lines(children_of(ledger, opened)), tokens, count, frame)


def _head(ledger: Ledger, opened: OpenedHandle, tokens: int, count: CountTokens) -> str:
    handle = handle_of(opened.numbers)
    if opened.summary is None:
        messages = count_messages(opened.numbers)
        return f"[{handle} · {messages:,} messages, one line each · expand the handle of one to read it]"
    what = f"[{handle} · summary of {count_messages(opened.summary.sources):,} messages]"
    below = "[it was made of these · expand the handle of one to read it]"
    if any(one.summary == opened.summary for one in summaries_in_view(ledger)):
        return f"{what}\n{below}"
    end = end_within(opened.text, 0, len(opened.text), tokens, count)
    cut = "" if end == len(opened.text) else "\n[the summary goes on]"
    return f"{what}\n{opened.text[:end]}{cut}\n{below}"


def _lines(children: Iterator[ExpansionLine]) -> Iterator[AnswerBlock[int]]:
    for child in children:
        what = f"summary of {child.messages:,} messages" if child.kind == "summary" else child.who
        line = f"{child.handle} · {what} · {child.tokens:,} tokens · {child.first_line}"
        yield AnswerBlock(text=line, about=child.sources[0].first)


def _rest(numbers: Sequence[Numbers], left: int | None) -> str:
    if left is None:
        return ""
    rest = tuple(subtract(numbers, (Numbers(first=1, last=left - 1),)))
    return f"\n[{count_messages(rest):,} more messages follow: expand {handle_of(rest)}]"
