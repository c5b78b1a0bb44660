"""How often a session needed removed results again since its last compaction, beside how often that was expected.

An answer uses a removed result if it contains a name that only the result's placeholder, or the index behind a summary, still shows;
if it recalls the result; or if it repeats the result's call although the file was not changed since. Each result counts at most once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lowwater.core.mechanisms.results import calls_in, result_text, results_in
from lowwater.core.mechanisms.reuse import (
    Experience,
    ResultFacts,
    chance_of_later_use,
    facts_of,
    uses_between,
)
from lowwater.core.messages import Message, ToolCall
from lowwater.core.references import NAME
from lowwater.core.summary.frame import index_in
from lowwater.core.summary.index import listed_in
from lowwater.core.tools import file_access, is_recall
from lowwater.core.view import Edited, Item, Summary, newest_number

_HANDLE = re.compile(r"\blw:\s?(\d{1,15})")


class _Removed(Struct, frozen=True, kw_only=True):
    """A result that the view no longer shows, and the names that its placeholder or index line has."""

    number: int
    facts: ResultFacts
    names: frozenset[str]
    call: ToolCall | None = None


def experienced(items: Sequence[Item], *, after: int) -> Experience:
    """Return the expected and the observed uses, in messages after number `after`, of what the view had removed by then."""
    newest = newest_number(items[-1]) if items else 0
    new = [
        item.message
        for item in items
        if not isinstance(item, Summary) and item.number > after and item.message.role == "assistant"
    ]
    removed = [each for each in _removed(items) if each.number <= after]
    if not new or not removed or newest <= after:
        return Experience()
    expected = 0.0
    for each in removed:
        age = each.facts.calls_ago
        before = max(1, age - len(new))
        chance = chance_of_later_use(_at_age(each.facts, before))
        expected += uses_between(chance, before, age)
    known = _said(item.message for item in items if not isinstance(item, Summary) and item.number <= after)
    said = frozenset(_said(new) - known)
    calls = [call for message in new for call in message.calls]
    handles = {
        int(found) for call in calls if is_recall(call.name) for found in _HANDLE.findall(call.arguments)
    }
    again = set(_keys(calls))
    observed = sum(
        each.number in handles or not said.isdisjoint(each.names) or _is_made_again(each, again)
        for each in removed
    )
    return Experience(expected=expected, observed=float(observed))


def _removed(items: Sequence[Item]) -> Iterator[_Removed]:
    calls, facts = calls_in(items), facts_of(items)
    edited = [at for at, item in enumerate(items) if isinstance(item, Edited)]
    for result in results_in(items, edited, calls, placeholders=True):
        about = facts[result.item]
        if about is not None and result.text != (whole := result_text(result.original)):
            names = frozenset(NAME.findall(result.text))
            if result.call is not None:
                names -= frozenset(NAME.findall(result.call.arguments))
            yield _Removed(
                number=result.number,
                facts=_of_length(about, len(whole)),
                names=names,
                call=result.call,
            )
    newest = newest_number(items[-1]) if items else 0
    for item in items:
        if isinstance(item, Summary):
            for listed in listed_in(index_in(item.message.text)):
                facts_now = ResultFacts(
                    tool=listed.kind,
                    chars=listed.chars,
                    calls_ago=max(1, (newest - listed.number) // 2),
                    calls=max(1, newest // 2),
                )
                names = frozenset(name.text for name in listed.names)
                yield _Removed(number=listed.number, facts=facts_now, names=names)


def _of_length(facts: ResultFacts, chars: int) -> ResultFacts:
    return ResultFacts(
        tool=facts.tool, chars=chars, calls_ago=facts.calls_ago, calls=facts.calls, changed=facts.changed
    )


def _at_age(facts: ResultFacts, calls_ago: int) -> ResultFacts:
    since = facts.calls_ago - calls_ago
    return ResultFacts(
        tool=facts.tool,
        chars=facts.chars,
        calls_ago=calls_ago,
        calls=max(1, facts.calls - since),
        changed=facts.changed,
    )


def _said(messages: Iterable[Message]) -> set[str]:
    """Return the names in the text and the calls of these messages; results are left out."""
    said: set[str] = set()
    for message in messages:
        if message.role != "tool":
            said.update(NAME.findall(message.text))
        for call in message.calls:
            said.update(NAME.findall(call.arguments))
    return said


def _keys(calls: Iterable[ToolCall]) -> Iterator[tuple[str, str]]:
    """Yield what identifies a repetition of each call: the file that it reads, or its name and arguments."""
    for call in calls:
        access = file_access(call)
        if access is None:
            yield call.name, call.arguments
        elif not access.changes:
            yield from (("", path) for path in access.paths)


def _is_made_again(removed: _Removed, again: set[tuple[str, str]]) -> bool:
    return (
        removed.call is not None
        and not removed.facts.changed
        and any(key in again for key in _keys([removed.call]))
    )
