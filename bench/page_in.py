"""Would excerpts of removed results pay? What follows when a new message names what stands in nothing but old tool results.

    .venv/bin/python -m bench.page_in   # a minute

Results more than 20 calls old are taken as removed. A *mention* is a new user message or a new tool result with a name that stands
in removed results only, and in no talk and no newer result; it refers to the newest of them. Counted is, in the ten calls
after it, whether an answer names something else that stands in that result alone (*used*; *in the excerpt*: in the lines around
the mentioned name), and whether the same file is read, or the same call made, again.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from bench.transcripts import ABSENT, CANONICAL, sessions
from lowwater.core.messages import Message, ToolCall
from lowwater.core.references import NAME, reference_kind
from lowwater.core.tools import class_of, file_access
from lowwater.lab.references.uses import LaterUse, find_words, uses_of

REMOVED, SOON, SHORTEST, MOST_NAMES = 20, 10, 600, 12


_BEFORE, _BEHIND, _WIDTH = 2, 8, 160
"""Lines of an excerpt before and behind the one with the name, and characters of each."""


def excerpt(text: str, name: str) -> str:
    """Return the lines around a name in the text of a result."""
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines) if name in line), 0)
    return "\n".join(line[:_WIDTH] for line in lines[max(0, at - _BEFORE) : at + _BEHIND + 1])


class Mention(Struct, kw_only=True):
    """What came of the mentions of one kind in one source."""

    messages: int = 0
    mentions: int = 0
    used: int = 0
    in_excerpt: int = 0
    again: int = 0
    chars: int = 0
    """Of their excerpts."""


class _Result(Struct, frozen=True, kw_only=True):
    number: int
    turn: int
    call: ToolCall
    text: str


def mentions_of(messages: Sequence[Message], totals: dict[str, Mention]) -> None:  # noqa: PLR0912  # one pass over a session
    """Count the mentions of a session by their kind."""
    uses = defaultdict(list)
    for use in uses_of(messages):
        uses[use.origin.number].append(use)
    calls: dict[str, ToolCall] = {}
    made = defaultdict(list)
    results: list[_Result] = []
    last_said: dict[str, int] = {}
    """The newest turn in which each name was said in talk, calls or results."""
    holders: dict[str, list[_Result]] = defaultdict(list)
    turn, pending = 0, list[tuple[str, int, int, _Result, str]]()
    for number, message in enumerate(messages, start=1):
        turn += message.role == "assistant"
        for kind, text in _new(message):
            names = list(dict.fromkeys(name for name in NAME.findall(text[:20_000]) if len(name) > 3))
            totals[kind].messages += 1
            found: dict[int, tuple[_Result, str]] = {}
            for name in names:
                old = holders.get(name)
                if old and reference_kind(name) != "number" and turn - last_said[name] > REMOVED:
                    found.setdefault(old[-1].number, (old[-1], name))
            for result, name in list(found.values())[:MOST_NAMES]:
                pending.append((kind, turn, number, result, name))
        for text in _said(message):
            last_said |= dict.fromkeys(NAME.findall(text), turn)
        if not message.results:
            for name in [name for text in _said(message) for name in NAME.findall(text)]:
                holders.pop(name, None)
        calls |= {call.id: call for call in message.calls}
        for key in (key for call in message.calls for key in _keys(call)):
            made[key].append(turn)
        for each in message.results:
            if each.call_id in calls and len(each.text) > SHORTEST:
                result = _Result(number=number, turn=turn, call=calls[each.call_id], text=each.text)
                results.append(result)
                for name in set(NAME.findall(each.text)):
                    holders[name].append(result)
    _count(pending, totals, uses, made)


def _count(
    pending: Sequence[tuple[str, int, int, _Result, str]],
    totals: dict[str, Mention],
    uses: Mapping[int, Sequence[LaterUse]],
    made: Mapping[tuple[str, str], Sequence[int]],
) -> None:
    for kind, at, _, result, name in pending:
        total, shown = totals[kind], excerpt(result.text, name)
        soon = [use for use in uses[result.number] if at < use.turn <= at + SOON and use.text != name]
        total.mentions += 1
        total.chars += len(shown)
        total.used += bool(soon)
        total.in_excerpt += any(find_words(use.text, shown) >= 0 for use in soon)
        total.again += any(at < when <= at + SOON for key in _keys(result.call) for when in made[key])


def _new(message: Message) -> Iterator[tuple[str, str]]:
    if message.results:
        yield from (("tool result", result.text) for result in message.results)
    elif message.role == "user":
        yield "user message", message.text


def _said(message: Message) -> Iterator[str]:
    yield message.text
    yield from (call.arguments for call in message.calls)
    yield from (result.text for result in message.results)


def _keys(call: ToolCall) -> Iterator[tuple[str, str]]:
    access = file_access(call)
    if access is None:
        yield call.name, call.arguments
    elif not access.changes:
        yield from (("", path) for path in access.paths)


class TaskLists(Struct, kw_only=True):
    """What became of task lists that were more than 20 calls old at a cut of a session."""

    cuts: int = 0
    old: int = 0
    recent: int = 0
    """Those no older than 80 calls."""
    changed: int = 0
    """In the next 20 calls."""
    recent_changed: int = 0
    chars: int = 0
    """Of the last call for each."""


def task_lists(messages: Sequence[Message], found: TaskLists) -> None:
    """Count the task lists of a session at its cuts."""
    answers = [message.calls for message in messages if message.role == "assistant"]
    sizes = [[len(call.arguments) for call in calls if class_of(call) == "todo"] for calls in answers]
    for cut in (40, 80, 160, 320):
        if cut >= len(answers):
            return
        last = max((at for at in range(cut) if sizes[at]), default=cut)
        found.cuts += 1
        if last < cut - REMOVED:
            is_recent, changed = last >= cut - 80, any(sizes[cut : cut + REMOVED])
            found.old += 1
            found.recent += is_recent
            found.changed += changed
            found.recent_changed += changed and is_recent
            found.chars += sum(sizes[last])


def main() -> int:
    """Print the table."""
    if not CANONICAL.exists():
        print(ABSENT)
        return 0
    lists = TaskLists()
    by_source: dict[str, dict[str, Mention]] = defaultdict(lambda: defaultdict(Mention))
    for session in sessions():
        task_lists([each.message for each in session.messages], lists)
        mentions_of([each.message for each in session.messages], by_source[session.name.split("/")[0]])
    print(
        "| named by | source | messages | mentions | used | in the excerpt | called again | characters of an excerpt |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for kind in ("user message", "tool result"):
        for source in ("all", *sorted(by_source)):
            of = [totals[kind] for name, totals in by_source.items() if source in ("all", name)]
            count = sum(each.mentions for each in of)
            shares = (
                f"{sum(getattr(each, name) for each in of) / max(1, count):.1%}"
                for name in ("used", "in_excerpt", "again")
            )
            chars = sum(each.chars for each in of) // max(1, count)
            print(
                f"| {kind} | {source} | {sum(each.messages for each in of):,} | {count:,} | {' | '.join(shares)} | {chars} |"
            )
    print(
        f"\nTask lists more than {REMOVED} calls old: at {lists.old} of {lists.cuts} cuts, {lists.chars // max(1, lists.old)} characters in the last call; "
        f"changed in the next {REMOVED} calls: {lists.changed}, of the {lists.recent} no older than 80 calls {lists.recent_changed}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
