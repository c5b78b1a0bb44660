"""Finding original messages by words or by handle, with their neighbours; and how much room recalled text may take."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from msgspec import Struct

from lowwater.core.entries import Numbers
from lowwater.core.ledger import Ledger, Numbered
from lowwater.core.limits import Limits, share_of
from lowwater.core.messages import Span, Text, ToolCall, texts_of
from lowwater.core.recall.index_terms import (
    UNASKED,
    folded_terms,
    read_question,
    spaced,
    stems_in,
    with_parts,
)
from lowwater.core.recall.ranking import SearchedText, rank_texts
from lowwater.core.recall.recalled import Recalled, RecalledMessage, clipped, names_messages, read_handle
from lowwater.core.stored import Hit
from lowwater.core.tools import is_recall
from lowwater.core.turns.decision_context import limits_for
from lowwater.core.turns.state import Setup, State
from lowwater.errors import BadInput

MOST_HITS = 5
Search: TypeAlias = Callable[[str, int], Sequence[Hit]]
"""Finds messages of the session by words, best first: `search(words, limit)`."""


def recall(
    ledger: Ledger, wanted: str, *, search: Search | None = None, limit: int = MOST_HITS, near: int = 1
) -> list[Recalled]:
    """Return the messages a handle names, in order, or those that match the words best, best first.

    A single message comes with its group and `near` messages before and after that. Without a `search` all messages are
    read. Earlier calls of recall and their answers are not found by words: they only repeat others. Raises BadInput if
    `limit` is below 1.
    """
    if limit < 1:
        raise BadInput(f"limit is {limit}: ask for at least 1 message")
    if names_messages(wanted):
        return list(_named(ledger, named_numbers(ledger, wanted), near=near))
    return list(find_messages(ledger, wanted, search=search, limit=limit, near=near))


def named_numbers(ledger: Ledger, handle: str) -> tuple[Numbers, ...]:
    """Return the messages that a handle names, without those that the client took back; raise BadInput if none is left."""
    numbers = read_handle(handle, of=len(ledger.messages))
    retracted = ledger.retracted()
    if not retracted:
        return numbers
    left = tuple(subtract(numbers, (Numbers(first=each, last=each) for each in retracted)))
    if not left:
        raise BadInput(
            f"{clipped(handle)} is no part of this conversation any more: the user went back and took it another way"
        )
    return left


def find_messages(
    ledger: Ledger,
    words: str,
    *,
    search: Search | None,
    limit: int,
    near: int = 1,
    last: Container[int] = (),
) -> Iterator[Recalled]:
    """Yield the messages that match the words best, best first; those with a number in `last` after all others."""
    first: list[int] = []
    later: list[int] = []
    for number in _matching_numbers(ledger, words, search, limit):
        if number in last:
            later.append(number)
        elif not _is_recall_message(ledger, number):
            first.append(number)
            if len(first) == limit:
                break
    rest = (number for number in later if not _is_recall_message(ledger, number))
    for number in islice(chain(first, rest), limit):
        yield _recalled(ledger, number, excerpt_of=words, near=near)


def _is_recall_message(ledger: Ledger, number: int) -> bool:
    """Return whether a message is a call of a recall tool or its answer."""
    message = ledger.messages[number - 1].message
    calls = message.calls
    if message.results and not any(isinstance(part, Text) for part in message.parts):
        calls = tuple(calls_answered_by(ledger.messages, number))
    return bool(calls) and all(is_recall(call.name) for call in calls)


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
    group, retracted = group_of(ledger.messages, number), ledger.retracted()
    all_near = [
        one
        for one in recalled_messages(ledger.messages, with_neighbours(ledger.messages, group, near))
        if one.number not in retracted
    ]
    (one,) = (one for one in all_near if one.number == number)
    return Recalled(
        number=number,
        message=one.message,
        tokens=one.tokens,
        excerpt=excerpt(one.text, excerpt_of),
        group=group,
        near=tuple(other for other in all_near if other.number != number),
    )


def recalled_messages(messages: Sequence[Numbered], numbers: Numbers) -> list[RecalledMessage]:
    """Return the messages with these numbers."""
    read = messages[numbers.first - 1 : numbers.last]
    return [
        RecalledMessage(number=number, message=one.message, tokens=one.tokens)
        for number, one in enumerate(read, start=numbers.first)
    ]


# Searching

_FIRST_FACTOR = 3
"""How many times the limit a search asks for first: some hits may be calls of recall itself."""
_NEXT_FACTOR = 4
"""How many times more it asks for next, if that was not enough."""


def _matching_numbers(ledger: Ledger, words: str, search: Search | None, limit: int) -> Iterator[int]:
    """Yield the numbers of the messages that match, best first."""
    count, retracted = len(ledger.messages), ledger.retracted()
    if search is None:
        yield from (number for number in scan(ledger, words, count) if number not in retracted)
        return
    for hit in widening(lambda most: search(words, most), limit):
        # The index may have messages that another process appended since this ledger was read.
        if hit.number <= count and hit.number not in retracted:
            yield hit.number


def widening(search: Callable[[int], Sequence[Hit]], limit: int) -> Iterator[Hit]:
    """Yield what a search finds, best first, each hit once, asking for more and more until there is no more.

    The caller stops reading once it has `limit` useful hits; useless ones, such as calls of recall itself, hide nothing.
    """
    seen: set[tuple[str, int]] = set()
    most = _FIRST_FACTOR * limit
    while True:
        hits = search(most)
        before = len(seen)
        for hit in hits:
            if (hit.session, hit.number) not in seen:
                seen.add((hit.session, hit.number))
                yield hit
        if len(seen) == before or len(hits) < most:
            return
        most *= _NEXT_FACTOR


def scan(ledger: Ledger, wanted: str, limit: int) -> list[int]:
    """Return the numbers of the messages that match best, best first; every message is read."""
    question = read_question(wanted)
    texts = (
        SearchedText(
            place=(0, number),
            tokens=one.tokens,
            terms=folded_terms(spaced(with_parts("\n".join(texts_of(one.message))))),
        )
        for number, one in enumerate(ledger.messages, start=1)
    )
    ranked = rank_texts(question, texts, limit) if question.terms else []
    return [number for (_, number), _ in ranked if 1 <= number <= len(ledger.messages)][:limit]


# Groups: a call with its results

_FARTHEST_CALL = 64
"""How many messages apart a call and its result may be to be found together."""


def group_of(messages: Sequence[Numbered], number: int) -> Numbers:
    """Return the group of a message: a tool result with its call, a call with its results; otherwise the message alone."""
    first = _first(messages, number)
    return Numbers(first=first, last=max(number, _last(messages, first)))


def calls_answered_by(messages: Sequence[Numbered], number: int) -> list[ToolCall]:
    """Return the calls that the results in a message answer, if they are near."""
    wanted = {result.call_id for result in messages[number - 1].message.results}
    first = _first(messages, number) if wanted else number
    return [call for call in messages[first - 1].message.calls if call.id in wanted]


def with_neighbours(messages: Sequence[Numbered], group: Numbers, by: int) -> Numbers:
    """Return the group with `by` messages before and after it."""
    return Numbers(first=max(1, group.first - by), last=min(len(messages), group.last + by))


def _first(messages: Sequence[Numbered], number: int) -> int:
    """Return the number of the message whose call a message answers, its own if there is none nearby."""
    wanted = {result.call_id for result in messages[number - 1].message.results}
    if not wanted:
        return number
    for before in range(number - 1, max(0, number - 1 - _FARTHEST_CALL), -1):
        if any(call.id in wanted for call in messages[before - 1].message.calls):
            return before
    return number


def _last(messages: Sequence[Numbered], first: int) -> int:
    """Return the number of the message with the last answer to a message's calls, its own if there is none nearby."""
    last = first
    wanted = {call.id for call in messages[first - 1].message.calls}
    for after in range(first + 1, min(len(messages), first + _FARTHEST_CALL) + 1):
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


# Excerpts and passages

_WORD = re.compile(r"[\w./-]*\w")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]{3,}")
_EXCERPT_WIDTH = 240
"""Characters of an excerpt."""
_REACH = 400
"""Characters of a passage before and after a match, and more up to the next end of a line."""
_LONGEST = 4_000
"""The longest passage that neighbouring ones are joined to, and the longest query, in characters."""
_MOST_MATCHES = 5_000
"""Matches of single words that are compared in one text."""
_GOOD_ENOUGH = 0.6
"""A match counts if the words around it are worth this share of those around the best match."""


class _Match(Struct, frozen=True, kw_only=True):
    start: int
    stop: int
    word: str


def words_in(wanted: str) -> list[str]:
    """Return the words to look for, each once, in lower case; those that only make it a question only if there are no others."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(wanted[:_LONGEST])))
    return [word for word in words if word not in UNASKED] or words


def excerpt(text: str, wanted: str = "") -> str:
    """Return one line of a text: around the place with most of the words, or else its first line."""
    matches = _matches(text, wanted)
    if not matches:
        return first_line(text)
    worth = _worth(matches, _EXCERPT_WIDTH)
    best = matches[max(range(len(matches)), key=lambda at: (worth[at], -at))]
    start = _word_start(text, max(0, best.start - _EXCERPT_WIDTH // 4), best.start)
    return _one_line(text, start, start + _EXCERPT_WIDTH)


def first_line(text: str, width: int = 120) -> str:
    """Return the first line of content; headings are skipped if there is anything else."""
    lines = [line.strip() for line in text.lstrip()[:_LONGEST].split("\n")]
    content = [line for line in lines if len(line) > 2 and not line.startswith("#")]
    return _one_line((content or lines)[0], 0, width)


def passages(text: str, wanted: str) -> Iterator[Span]:
    """Yield the passages of a text that contain the phrase, or else most of its words."""
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
    """Return the matches that have most of the words near them."""
    matches = _matches(text, wanted)
    worth = _worth(matches, _REACH)
    least = _GOOD_ENOUGH * max(worth, default=0)
    return [match for match, weight in zip(matches, worth, strict=True) if weight >= least]


def _matches(text: str, wanted: str) -> list[_Match]:
    """Return where the words occur; if none does, where their stems begin a word or a part of a name.

    Of a long word in a script without spaces, pairs of characters count if the word does not occur.
    """
    for words in (words_in(wanted), stems_in(wanted)):
        if words and (matches := list(islice(_found(text, _any_of(words)), _MOST_MATCHES))):
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
    """Return for each match the worth of the words that follow within reach: each counts once, with its length."""
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
    """Return the passage around a match, from the start of a line to the end of one if these are near."""
    start, stop = max(0, match.start - _REACH), min(len(text), match.stop + _REACH)
    begins = text.rfind("\n", max(0, start - _REACH), start)
    ends = text.find("\n", stop, stop + _REACH)
    if begins >= 0:
        start = begins + 1
    elif start <= _REACH:
        start = 0
    return Span(start=start, stop=stop if ends < 0 else ends)


def _word_start(text: str, start: int, before: int) -> int:
    """Return where the first whole word at or after `start` begins, if that is before `before`."""
    blank = next((at for at in range(start, before) if text[at].isspace()), None) if start else None
    return start if blank is None else blank + 1


def _one_line(text: str, start: int, stop: int) -> str:
    """Return a part of a text on one line, with an ellipsis where something is left out."""
    flat = " ".join(text[start:stop].split())
    return f"{'…' if start > 0 else ''}{flat}{'…' if stop < len(text) else ''}"


# Room for recalled text

AROUND_RESULT = 32
"""The most tokens that a provider adds around a tool result."""
_RESERVE = 256
"""Tokens kept free: a call for which there is no room must be answered, too."""
_ROOM_SHARE, _MOST_ROOM = 0.10, 25_000
"""The room for one answer: a share of the context length, and tokens at most."""


class RecallRoom(Struct, frozen=True, kw_only=True):
    """How many tokens, as the session counts them, recalled text may take."""

    each: int
    """For one answer."""
    left: int
    """For all answers together, up to the largest prompt that may be sent."""


def room_in(state: State, setup: Setup) -> RecallRoom:
    """Return the room a session has now; an answer is never so large that it is truncated on arrival (docs/specification.md: M)."""
    limits = setup.settings.tool_results
    share, most = limits.insertion_limit_ratio, limits.insertion_limit_tokens
    is_unlimited = share <= 0 or most <= 0
    return recall_room(
        limits_for(state, setup),
        prompt=state.prompt,
        scale=state.calibration.scale,
        share=_ROOM_SHARE if is_unlimited else min(_ROOM_SHARE, share),
        most=_MOST_ROOM if is_unlimited else min(_MOST_ROOM, most),
    )


def recall_room(
    limits: Limits, *, prompt: int, scale: float = 1.0, share: float = _ROOM_SHARE, most: int = _MOST_ROOM
) -> RecallRoom:
    """Return the room next to a prompt: for one answer a share of the context length, for all what may still be sent.

    `prompt` is in the model's tokens; `scale` is how many of these one counted token stands for.
    """
    each = int(min(share_of(limits.context, share), most) / scale)
    left = int((limits.most - _RESERVE - prompt) / scale)
    return RecallRoom(each=max(0, each - AROUND_RESULT), left=max(0, left))


# Ranges of messages


def count_messages(ranges: Iterable[Numbers]) -> int:
    """Return how many messages these ranges have."""
    return sum(span.last - span.first + 1 for span in ranges)


def overlaps(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> bool:
    """Return whether some message is in both lists of ranges."""
    return any(one.first <= other.last and other.first <= one.last for one in ours for other in theirs)


def is_inside(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> bool:
    """Return whether each of our ranges lies within one of theirs."""
    return all(any(other.first <= one.first and one.last <= other.last for other in theirs) for one in ours)


def subtract(ours: Iterable[Numbers], theirs: Iterable[Numbers]) -> Iterator[Numbers]:
    """Yield what is left of our ranges without theirs."""
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


def take_first(ranges: Iterable[Numbers], most: int) -> tuple[Numbers, ...]:
    """Return the first `most` of these messages."""
    taken: list[Numbers] = []
    for span in ranges:
        if most <= 0:
            break
        taken.append(Numbers(first=span.first, last=min(span.last, span.first + most - 1)))
        most -= count_messages(taken[-1:])
    return tuple(taken)
