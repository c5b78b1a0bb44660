"""Finding originals by words, tools and places."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import log
from typing import TypeAlias

from msgspec import Struct

from lowwater.core.entries import Numbers
from lowwater.core.groups import Span
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.limits import Limits, share_of
from lowwater.core.messages import Text, ToolCall, texts_of
from lowwater.core.recall.recalled import Recalled, RecalledMessage, is_recall, names_messages, read_handle
from lowwater.core.stored import Hit
from lowwater.core.turns.decision_context import limits_for
from lowwater.core.turns.state import Setup, State
from lowwater.errors import BadInput


def counted(ranges: Iterable[Numbers]) -> int:
    """Return how many messages these are."""
    return sum(span.last - span.first + 1 for span in ranges)


def overlap(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> bool:
    """Return whether some message is in both."""
    return any(one.first <= other.last and other.first <= one.last for one in ours for other in theirs)


def inside(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> bool:
    """Return whether all of ours are among theirs."""
    return all(any(other.first <= one.first and one.last <= other.last for other in theirs) for one in ours)


def without(ours: Iterable[Numbers], theirs: Iterable[Numbers]) -> Iterator[Numbers]:
    """Yield what is left of ours once theirs are taken away."""
    taken = sorted(theirs, key=lambda span: span.first)
    for one in ours:
        first = one.first
        for other in taken:
            if other.last < first or other.first > one.last:
                continue
            if first < other.first:
                yield Numbers(first=first, last=other.first - 1)
            first = other.last + 1
        if first <= one.last:
            yield Numbers(first=first, last=one.last)


def first_of(ranges: Iterable[Numbers], most: int) -> tuple[Numbers, ...]:
    """Return the first `most` of these messages."""
    taken: list[Numbers] = []
    for span in ranges:
        if most <= 0:
            break
        taken.append(Numbers(first=span.first, last=min(span.last, span.first + most - 1)))
        most -= counted(taken[-1:])
    return tuple(taken)


AROUND_RESULT = 32
"""Tokens that a provider puts around a tool result, at most."""
_FOR_REFUSALS = 256
"""Tokens that stay free: a call for which there is no room must be answered, too."""
_SHARE, _MOST = 0.10, 25_000


class Room(Struct, frozen=True, kw_only=True):
    """How many tokens, as the session counts them, recalled text may take."""

    each: int
    """One answer."""
    left: int
    """All answers together, up to the largest prompt that may be sent."""


def room_for(
    limits: Limits, *, prompt: int, scale: float = 1.0, share: float = _SHARE, most: int = _MOST
) -> Room:
    """Return the room beside a prompt: for each answer a share of the context length, for all what may still be sent.

    `prompt` is in the model's tokens; `scale` is how many of these one counted token is.
    """
    each = int(min(share_of(limits.context, share), most) / scale)
    left = int((limits.most - _FOR_REFUSALS - prompt) / scale)
    return Room(each=max(0, each - AROUND_RESULT), left=max(0, left))


def room_in(state: State, setup: Setup) -> Room:
    """Return the room a session has now; an answer is small enough to pass the door as it is (docs/specification.md: M)."""
    door = setup.settings.tool_results
    share, most = door.insertion_limit_ratio, door.insertion_limit_tokens
    is_open = share <= 0 or most <= 0
    return room_for(
        limits_for(state, setup),
        prompt=state.prompt,
        scale=state.calibration.scale,
        share=_SHARE if is_open else min(_SHARE, share),
        most=_MOST if is_open else min(_MOST, most),
    )


_WORD = re.compile(r"[\w./-]*\w")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]{3,}")
_WIDTH = 240
"""Characters of an excerpt."""
_REACH = 400
"""Characters of a passage before and after a match, more where a line ends soon."""
_LONGEST = 4_000
"""Characters to which neighbouring passages are joined, and of what is looked for."""
_MOST_MATCHES = 5_000
"""Matches of single words that are compared in one text."""
_WORTH = 0.6
"""A place is as good as the best if the words around it are worth this share of the words there."""


class _Match(Struct, frozen=True, kw_only=True):
    start: int
    stop: int
    word: str


def words_in(wanted: str) -> list[str]:
    """Return the words to look for, each once, in small letters."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(wanted[:_LONGEST])))


def excerpt(text: str, wanted: str = "") -> str:
    """Return one line of a text: around the place that has most of the words, or else its first."""
    matches = _matches(text, wanted)
    if not matches:
        return first_line(text)
    worth = _worth(matches, _WIDTH)
    best = matches[max(range(len(matches)), key=lambda at: (worth[at], -at))]
    start = _word_start(text, max(0, best.start - _WIDTH // 4), best.start)
    return _one_line(text, start, start + _WIDTH)


def first_line(text: str, width: int = 120) -> str:
    """Return the first line that says something; a heading only says what the next line is about."""
    lines = [line.strip() for line in text.lstrip()[:_LONGEST].split("\n")]
    said = [line for line in lines if len(line) > 2 and not line.startswith("#")]
    return _one_line((said or lines)[0], 0, width)


def passages(text: str, wanted: str) -> Iterator[Span]:
    """Yield the stretches of a text that have the words: the phrase itself, or else most of its words."""
    phrase = _phrase(text, wanted)
    first = next(phrase, None)
    matches = iter(_best(text, wanted)) if first is None else chain((first,), phrase)
    last: Span | None = None
    for match in matches:
        span = _passage(text, match)
        if last is None:
            last = span
        elif span.start <= last.stop and span.stop - last.start <= _LONGEST:
            last = Span(start=last.start, stop=max(last.stop, span.stop))
        elif span.stop > last.stop:
            yield last
            last = Span(start=max(span.start, last.stop), stop=span.stop)
    if last is not None:
        yield last


def _phrase(text: str, wanted: str) -> Iterator[_Match]:
    words = wanted[:_LONGEST].split()
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)
    return _found(text, pattern) if words else iter(())


def _best(text: str, wanted: str) -> list[_Match]:
    """Return the matches with most of the words within reach."""
    matches = _matches(text, wanted)
    worth = _worth(matches, _REACH)
    least = _WORTH * max(worth, default=0)
    return [match for match, weight in zip(matches, worth, strict=True) if weight >= least]


def _matches(text: str, wanted: str) -> list[_Match]:
    """Return where the words stand; of a long word without spaces inside, its pairs of characters will do."""
    words = words_in(wanted)
    matches = list(islice(_found(text, _any_of(words)), _MOST_MATCHES)) if words else []
    if matches:
        return matches
    pairs = [run[at : at + 2] for run in _UNSPACED.findall(wanted[:_LONGEST]) for at in range(len(run) - 1)]
    return list(islice(_found(text, _any_of(pairs)), _MOST_MATCHES)) if pairs else []


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile("|".join(re.escape(word) for word in longest_first), re.IGNORECASE)


def _found(text: str, pattern: re.Pattern[str]) -> Iterator[_Match]:
    for found in pattern.finditer(text):
        yield _Match(start=found.start(), stop=found.end(), word=found[0].lower())


def _worth(matches: Sequence[_Match], reach: int) -> list[int]:
    """Return for each match what the words from it on, within reach, are worth: each once, the long ones most."""
    worth: list[int] = []
    stop = 0
    inside: dict[str, int] = {}
    for match in matches:
        while stop < len(matches) and matches[stop].stop <= match.start + max(reach, len(match.word)):
            inside[matches[stop].word] = inside.get(matches[stop].word, 0) + 1
            stop += 1
        worth.append(sum(len(word) for word in inside))
        inside[match.word] -= 1
        if not inside[match.word]:
            del inside[match.word]
    return worth


def _passage(text: str, match: _Match) -> Span:
    """Return what stands around a match, from the start of a line to the end of one where they are not far."""
    start, stop = max(0, match.start - _REACH), min(len(text), match.stop + _REACH)
    begins = text.rfind("\n", max(0, start - _REACH), start)
    ends = text.find("\n", stop, stop + _REACH)
    if begins >= 0:
        start = begins + 1
    elif start <= _REACH:
        start = 0
    return Span(start=start, stop=stop if ends < 0 else ends)


def _word_start(text: str, start: int, before: int) -> int:
    """Return where the first whole word at or after `start` begins, if that is not behind `before`."""
    blank = next((at for at in range(start, before) if text[at].isspace()), None) if start else None
    return start if blank is None else blank + 1


def _one_line(text: str, start: int, stop: int) -> str:
    """Return a stretch of a text on one line, with dots where something is left out."""
    flat = " ".join(text[start:stop].split())
    return f"{'…' if start > 0 else ''}{flat}{'…' if stop < len(text) else ''}"


_SATURATES, _BY_LENGTH = 1.2, 0.75


def scan(ledger: Ledger, wanted: str, limit: int) -> list[int]:
    """Return the numbers of the messages that match best, best first.

    They rank by BM25: rare words count most, repetition ever less, and long messages do not win by their length.
    """
    words = words_in(wanted)
    found: dict[int, Counter[str]] = {}
    lengths: dict[int, int] = {}
    whole = 0
    for number, numbered in enumerate(ledger.messages, start=1):
        text = "\n".join(texts_of(numbered.message)).lower()
        whole += len(text)
        hits = Counter({word: text.count(word) for word in words if word in text})
        if hits:
            found[number], lengths[number] = hits, len(text)
    count = len(ledger.messages)
    seen_in = Counter(word for hits in found.values() for word in hits)

    def score(number: int) -> float:
        longer = lengths[number] * count / whole
        return sum(
            log(1 + (count - seen_in[word] + 0.5) / (seen_in[word] + 0.5))
            * times
            / (times + _SATURATES * (1 - _BY_LENGTH + _BY_LENGTH * longer))
            for word, times in found[number].items()
        )

    return sorted(found, key=lambda number: (-score(number), -number))[:limit]


_NEIGHBOURHOOD = 64
"""How far a result may be from its call to be found with it."""


def recalled_messages(messages: Sequence[Numbered], numbers: Numbers) -> list[RecalledMessage]:
    """Return the messages with these numbers."""
    read = messages[numbers.first - 1 : numbers.last]
    return [
        RecalledMessage(number=number, message=one.message, tokens=one.tokens)
        for number, one in enumerate(read, start=numbers.first)
    ]


def group_of(messages: Sequence[Numbered], number: int) -> Numbers:
    """Return the group a message is in: a tool result with its call, a call with its results; else itself alone."""
    first = _first(messages, number)
    return Numbers(first=first, last=max(number, _last(messages, first)))


def calls_answered(messages: Sequence[Numbered], number: int) -> list[ToolCall]:
    """Return the calls that the results in a message answer, as far as they are near."""
    wanted = {result.call_id for result in messages[number - 1].message.results}
    first = _first(messages, number) if wanted else number
    return [call for call in messages[first - 1].message.calls if call.id in wanted]


def around(messages: Sequence[Numbered], group: Numbers, by: int) -> Numbers:
    """Return the group with `by` messages before and after it."""
    return Numbers(first=max(1, group.first - by), last=min(len(messages), group.last + by))


def _first(messages: Sequence[Numbered], number: int) -> int:
    """Return the number of the message with the call that a message answers, its own if there is none near."""
    wanted = {result.call_id for result in messages[number - 1].message.results}
    if not wanted:
        return number
    for before in range(number - 1, max(0, number - 1 - _NEIGHBOURHOOD), -1):
        if any(call.id in wanted for call in messages[before - 1].message.calls):
            return before
    return number


def _last(messages: Sequence[Numbered], first: int) -> int:
    """Return the number of the message with the last answer to the calls in a message, its own if there is none near."""
    last = first
    wanted = {call.id for call in messages[first - 1].message.calls}
    for after in range(first + 1, min(len(messages), first + _NEIGHBOURHOOD) + 1):
        if not wanted:
            break
        message = messages[after - 1].message
        if message.role == "assistant":
            break
        answered = {result.call_id for result in message.results} & wanted
        if answered:
            last = after
            wanted -= answered
    return last


Search: TypeAlias = Callable[[str, int], Sequence[Hit]]
"""Finds at most so many messages of the session by words, best first."""

MOST_HITS = 5
_SPARE = 3
"""How many more are asked for than wanted, for some of them may be recall's own."""
_WIDENS = 4
"""How many times more the next time, if that was not enough."""


def recall(
    ledger: Ledger, wanted: str, *, search: Search | None = None, limit: int = MOST_HITS, near: int = 1
) -> list[Recalled]:
    """Return the messages a handle names, in order, or those that match the words best, best first.

    A single message comes with its group and `near` messages before and after that. Without a `search` all
    messages are read. What recall itself was asked and answered earlier is not found by words: it only repeats. A
    `limit` below 1 is BadInput.
    """
    if limit < 1:
        raise BadInput(f"limit is {limit}: ask for at least 1 message")
    if names_messages(wanted):
        numbers = read_handle(wanted, of=len(ledger.messages))
        return list(_named(ledger, numbers, near=near))
    return list(find(ledger, wanted, search=search, limit=limit, near=near))


def find(
    ledger: Ledger,
    words: str,
    *,
    search: Search | None,
    limit: int,
    near: int = 1,
    last: Container[int] = (),
) -> Iterator[Recalled]:
    """Yield the messages that match the words best, best first; those with a number in `last` behind all others."""
    first: list[int] = []
    behind: list[int] = []
    for number in _found_hit(ledger, words, search, limit):
        if number in last:
            behind.append(number)
        elif not _is_own(ledger, number):
            first.append(number)
            if len(first) == limit:
                break
    rest = (number for number in behind if not _is_own(ledger, number))
    for number in islice(chain(first, rest), limit):
        yield _recalled(ledger, number, excerpt_of=words, near=near)


def widening(search: Callable[[int], Sequence[Hit]], limit: int) -> Iterator[Hit]:
    """Yield what a search finds, best first, each once; it is asked for ever more until there is no more.

    The reader stops once it has `limit` that are of use: what is of none, such as recall's own, hides nothing.
    """
    seen: set[tuple[str, int]] = set()
    most = _SPARE * limit
    while True:
        hits = search(most)
        before = len(seen)
        for hit in hits:
            if (hit.session, hit.number) not in seen:
                seen.add((hit.session, hit.number))
                yield hit
        if len(seen) == before or len(hits) < most:
            return
        most *= _WIDENS


def _is_own(ledger: Ledger, number: int) -> bool:
    """Return whether a message is a call of recall or its answer."""
    message = ledger.messages[number - 1].message
    calls = message.calls
    if message.results and not any(isinstance(part, Text) for part in message.parts):
        calls = tuple(calls_answered(ledger.messages, number))
    return bool(calls) and all(is_recall(call.name) for call in calls)


def _found_hit(ledger: Ledger, words: str, search: Search | None, limit: int) -> Iterator[int]:
    """Yield the numbers of the messages that match, best first, as far as they are asked for."""
    count = len(ledger.messages)
    if search is None:
        yield from scan(ledger, words, count)
        return
    for hit in widening(lambda most: search(words, most), limit):
        # An index may know of messages that another process appended since.
        if hit.number <= count:
            yield hit.number


def _named(ledger: Ledger, numbers: Sequence[Numbers], *, near: int) -> Iterator[Recalled]:
    if len(numbers) == 1 and numbers[0].first == numbers[0].last:
        yield _recalled(ledger, numbers[0].first, near=near)
        return
    for span in numbers:
        for one in recalled_messages(ledger.messages, span):
            alone = Numbers(first=one.number, last=one.number)
            yield Recalled(
                number=one.number,
                message=one.message,
                tokens=one.tokens,
                group=alone,
                excerpt=excerpt(one.text),
            )


def _recalled(ledger: Ledger, number: int, *, excerpt_of: str = "", near: int) -> Recalled:
    group = group_of(ledger.messages, number)
    all_near = recalled_messages(ledger.messages, around(ledger.messages, group, near))
    (one,) = (one for one in all_near if one.number == number)
    return Recalled(
        number=number,
        message=one.message,
        tokens=one.tokens,
        excerpt=excerpt(one.text, excerpt_of),
        group=group,
        near=tuple(other for other in all_near if other.number != number),
    )
