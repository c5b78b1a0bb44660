"""Whether the instrument measures anything: a result that the action names is removed, and beside it one that it does not name.

Removing the first must cost likelihood, removing the second must not. A pair is two results of one prompt: one that alone contains a
path, name or number of the action's arguments, and the one of those that contain nothing of them whose size is nearest, at most
a factor of two away. Removed means that the same few words stand in its place.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from bench.likelihood.points import Decision, rank
from bench.likelihood.prompts import Chat, encode
from lowwater.lab.references.uses import find_words

REMOVED = "[output removed]"
SHORTEST, SMALLEST, FACTOR = 4, 24, 2.0
"""Characters of what is named, tokens of a result, and how different in size the two of a pair may be."""
OF_A_POINT, OF_A_BAND = 1, 6
"""Pairs of a point, and points of a session in a band of lengths."""
NEEDED_PAIRS, NEEDED_AUC = 200, 0.9
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}|\d{3,}")
"""A word or number in a name; shorter ones stand everywhere."""


class Pair(Struct, frozen=True, kw_only=True):
    """Two results of a prompt, by the index of their messages."""

    named: int
    other: int


def pairs_of(decision: Decision) -> list[Pair]:
    """Return the pairs of a decision point, the newest named results first."""
    messages = decision.messages
    wanted = {
        each.text
        for each in decision.action.references
        if len(each.text) >= SHORTEST and each.tokens[0] > _ends_name(decision)
    }
    texts = [_all_text(message) for message in messages]
    having = {text: [at for at, each in enumerate(texts) if find_words(text, each) >= 0] for text in wanted}
    results = [at for at, message in enumerate(messages) if message["role"] == "tool"]
    sizes = {at: len(encode(messages[at]["content"] or "")) for at in results}
    named = {found[0] for found in having.values() if len(found) == 1 and found[0] in sizes}
    holding = {at for found in having.values() for at in found}
    free = [at for at in results if at not in holding]
    pairs: list[Pair] = []
    for at in sorted(named, reverse=True):
        fitting = [each for each in free if _near(sizes[at], sizes[each])]
        if sizes[at] >= SMALLEST and fitting and len(pairs) < OF_A_POINT:
            other = min(fitting, key=lambda each: (abs(sizes[each] - sizes[at]), -each))
            free.remove(other)
            pairs.append(Pair(named=at, other=other))
    return pairs


def without(messages: Sequence[Chat], at: int) -> list[Chat]:
    """Return the messages with one result removed."""
    return [{**each, "content": REMOVED} if place == at else each for place, each in enumerate(messages)]


def views_of(decision: Decision) -> Iterator[tuple[str, list[Chat]]]:
    """Yield the two views of each pair, with their names."""
    for number, pair in enumerate(pairs_of(decision)):
        yield f"named-{number}", without(decision.messages, pair.named)
        yield f"other-{number}", without(decision.messages, pair.other)


def auc(named: Sequence[float], other: Sequence[float]) -> float:
    """Return how often removing a named result costs more than removing one that is not; ties count half."""
    ordered = sorted(other)
    wins = sum(bisect_left(ordered, cost) + bisect_right(ordered, cost) for cost in named)
    return wins / (2 * len(named) * len(other))


def is_composable(decision: Decision, pair: Pair) -> bool:
    """Return whether what only the named result says in one piece can be put together from parts that stand elsewhere.

    The parts of `src/auth/login.py` are its folders and names; a path is often said in parts, or follows from another one.
    """
    texts = [_all_text(message) for message in decision.messages]
    elsewhere = "\n".join(text for at, text in enumerate(texts) if at != pair.named).lower()
    named = [
        each.text
        for each in decision.action.references
        if len(each.text) >= SHORTEST
        and [at for at, text in enumerate(texts) if find_words(each.text, text) >= 0] == [pair.named]
    ]
    return all(part.lower() in elsewhere for text in named for part in _PART.findall(text))


def _ends_name(decision: Decision) -> int:
    """Return the last token of the tool's name, which is no argument."""
    return decision.action.references[0].tokens[-1]


def _near(one: int, other: int) -> bool:
    return max(one, other) <= FACTOR * min(one, other)


def _all_text(message: Chat) -> str:
    calls = message.get("tool_calls") or ()
    return "\n".join([message["content"] or "", *(call["function"]["arguments"] for call in calls)])


def checked(decisions: Iterable[Decision]) -> list[Decision]:
    """Return what the check is made on: of each session and band of lengths the first decisions, by rank, that have a pair."""
    having: dict[tuple[str, str, int], list[Decision]] = defaultdict(list)
    for decision in decisions:
        if pairs_of(decision):
            having[decision.point.source, decision.point.session, decision.point.band].append(decision)
    found = [
        (place, decision.point.band, rank(decision.point), decision)
        for each in having.values()
        for place, decision in enumerate(sorted(each, key=lambda one: rank(one.point))[:OF_A_BAND])
    ]
    return [decision for *_, decision in sorted(found, key=lambda each: each[:3])]
