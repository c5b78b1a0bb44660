"""Finds out whether something used later is still in view, one recall away, or gone."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Literal, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, texts_of
from lowwater.core.recall.search import RecallRoom, Search
from lowwater.core.references import ReferenceKind
from lowwater.core.summary.activity import own_words
from lowwater.core.tools import EXPAND, SEARCH
from lowwater.core.view import Edited, Item, Original, Summary, View
from lowwater.lab.references.uses import LaterUse, argument_texts, find_words
from lowwater.protocols import Tokenizer
from lowwater.session.recall_tools import RecallTools

MOST_WORDS = 24
_SHORTEST = 3
_WORD = re.compile(r"[\w./-]*\w")
_SPAN = r"\d{1,15}(?:\s*(?:-|–|to)\s*(?:lw:)?\d{1,15})?"
_HANDLE = re.compile(rf"\blw:({_SPAN}(?:,{_SPAN})*)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
T = TypeVar("T")
UsePlace = Literal["in_view", "one_recall", "gone"]
Because = Literal[
    "shown",
    "handle",
    "ranges",
    "summary",
    "search",
    "not in the ledger",
    "no words",
    "not found",
    "not in what was read",
    "not offered",
]
LostTo = Literal["summary", "elided", "shortened", "dropped"]
"""What replaced a result: a summary of its turn, a placeholder, its beginning and end, or nothing because the client dropped it."""
LOST_TO: tuple[LostTo, ...] = get_args(LostTo)
PLACES: Mapping[Because, UsePlace] = {
    "shown": "in_view",
    "handle": "one_recall",
    "ranges": "one_recall",
    "summary": "one_recall",
    "search": "one_recall",
    "not in the ledger": "gone",
    "no words": "gone",
    "not found": "gone",
    "not in what was read": "gone",
    "not offered": "gone",
}
"""What each finding means.

- `handle`, `ranges`: the handle of its message stands in the view, and one answer has it, or several are needed;
- `summary`: the handle of several messages, its own among them, stands there; `search`: one finds its message;
- `not in the ledger`: the original was not kept; `no words`: nothing to ask by is visible; `not found`: no handle is
  visible and no search finds its message; `not in what was read`: its message was opened, but not where it stands;
  `not offered`: the model has no recall.
"""
MOST_TOKENS = 4_000
"""The most tokens of one answer of recall."""
MOST_ANSWERS = 5
"""The most answers read in one way: ranges of a message, handles, or matches of a search."""
_UNLIMITED = 10**9
_BEGINNING = 24
"""Characters by which a result is known that was cut in its middle; a placeholder begins with a bracket and the tool's name."""
_CAPTION = re.compile(r"^\[?lw:(\d+) · ", re.MULTILINE)
_GO_ON = re.compile(r"go on with (lines|characters) \[(\d+), (\d+)\]\]$")


class Sight:
    """The words in the messages that are sent."""

    def __init__(self, shown: Iterable[Message]) -> None:
        self._words = {
            word.lower() for message in shown for text in texts_of(message) for word in _WORD.findall(text)
        }

    def __contains__(self, word: str) -> bool:
        return word.lower() in self._words


def words_for(use: LaterUse, messages: Sequence[Message], sight: Sight) -> str:
    """Return the words to search for a use; empty if no nearby words are in view."""
    words = (word for text in _at_hand(use, messages) for word in _nearest_first(text) if word in sight)
    return " ".join(islice(dict.fromkeys(words), MOST_WORDS))


def _at_hand(use: LaterUse, messages: Sequence[Message]) -> Iterator[str]:
    """Yield the text before a reference: in its own answer, in the previous one, by the user."""
    answer = _said(messages[use.number - 1])
    yield answer[: max(0, find_words(use.text, answer))]
    earlier = range(use.number - 2, -1, -1)
    yield next((_said(messages[at]) for at in earlier if messages[at].role == "assistant"), "")
    yield next(
        (text for at in earlier if messages[at].role == "user" and (text := own_words(messages[at]))), ""
    )


def _said(message: Message) -> str:
    return "\n".join(chain((message.text,), *(argument_texts(call) for call in message.calls)))


def _nearest_first(text: str) -> Iterator[str]:
    return (word for word in reversed(_WORD.findall(text)) if len(word) >= _SHORTEST)


class Handle(Struct, frozen=True, kw_only=True):
    """The first and the last message that a handle names."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"lw:{self.first}" if self.is_single else f"lw:{self.first}-{self.last}"

    @property
    def is_single(self) -> bool:
        """Whether it names one message."""
        return self.first == self.last

    def leads_to(self, number: int) -> bool:
        """Return whether a message is among those it names."""
        return self.first <= number <= self.last


def visible_handles(items: Iterable[Item]) -> list[Handle]:
    """Return the handles in a view, each once, the narrowest first and the newest first among equals."""
    found = {
        (first, last) for item in items if not isinstance(item, Original) for first, last in _named(item)
    }
    handles = (Handle(first=first, last=last) for first, last in found if 1 <= first <= last)
    return sorted(handles, key=lambda handle: (handle.last - handle.first, -handle.last))


def _named(item: Item) -> Iterator[tuple[int, int]]:
    for text in texts_of(item.message):
        for spans in _HANDLE.findall(text):
            for span in spans.split(","):
                numbers = _NUMBER.findall(span)
                yield int(numbers[0]), int(numbers[-1])
    if isinstance(item, Summary):
        # Its words say which messages it stands for, and recall's tools that these are a handle.
        for span in item.sources:
            yield span.first, span.last


class UseOutcome(Struct, frozen=True, kw_only=True):
    """Where one use was found."""

    use: LaterUse
    because: Because
    """How it is reached, or why it is not."""
    answers: int = 0
    """The number of recall answers it took; 0 if it is in view or gone."""
    tokens: int = 0
    """Tokens written to get it back: the answers of recall, or the whole result if it is gone and the tool must run again."""
    lost_to: LostTo | None = None
    """What replaced the result it came from; None if the use is in view."""
    is_summarised: bool = False
    """Whether a summary stands for the result it came from, whether or not the use is in view."""

    @property
    def place(self) -> UsePlace:
        """Whether it is in the view, one recall away or gone."""
        return PLACES[self.because]


class RecallScore(Struct, frozen=True, kw_only=True):
    """The number of uses in view, one recall away, and gone."""

    in_view: int = 0
    one_recall: int = 0
    gone: int = 0
    by_kind: dict[ReferenceKind, dict[UsePlace, int]] = {}
    ways: dict[Because, int] = {}
    """The ways in which recall reaches uses."""
    causes: dict[Because, int] = {}
    """The reasons why uses are gone."""
    tokens: int = 0
    """Tokens written to get back everything that left the view."""

    @property
    def uses(self) -> int:
        """The number of all uses."""
        return self.in_view + self.one_recall + self.gone

    @property
    def share_in_view(self) -> float:
        """The share of uses in view; 1 if there are none."""
        return self.in_view / self.uses if self.uses else 1.0

    @property
    def share_one_recall(self) -> float:
        """The share of uses one recall away among those that left the view; 1 if none did."""
        left = self.one_recall + self.gone
        return self.one_recall / left if left else 1.0

    def plus(self, other: "RecallScore") -> "RecallScore":
        """Return the sum of both."""
        kinds = dict.fromkeys([*self.by_kind, *other.by_kind])
        return RecallScore(
            in_view=self.in_view + other.in_view,
            one_recall=self.one_recall + other.one_recall,
            gone=self.gone + other.gone,
            by_kind={kind: _sum(self.by_kind.get(kind, {}), other.by_kind.get(kind, {})) for kind in kinds},
            ways=_sum(self.ways, other.ways),
            causes=_sum(self.causes, other.causes),
            tokens=self.tokens + other.tokens,
        )


def recall_score(outcomes: Iterable[UseOutcome]) -> RecallScore:
    """Return the counts of outcomes."""
    places: Counter[UsePlace] = Counter()
    findings: Counter[Because] = Counter()
    by_kind: dict[ReferenceKind, Counter[UsePlace]] = {}
    tokens = 0
    for outcome in outcomes:
        places[outcome.place] += 1
        findings[outcome.because] += 1
        by_kind.setdefault(outcome.use.kind, Counter())[outcome.place] += 1
        tokens += outcome.tokens
    return RecallScore(
        in_view=places["in_view"],
        one_recall=places["one_recall"],
        gone=places["gone"],
        by_kind={kind: dict(counts) for kind, counts in by_kind.items()},
        ways={found: count for found, count in findings.items() if PLACES[found] == "one_recall"},
        causes={found: count for found, count in findings.items() if PLACES[found] == "gone"},
        tokens=tokens,
    )


def _sum(ours: Mapping[T, int], theirs: Mapping[T, int]) -> dict[T, int]:
    return dict(Counter(ours) + Counter(theirs))


class Reach:
    """What recall can get back at one point of a session."""

    def __init__(self, ledger: Ledger, search: Search | None, tokenizer: Tokenizer) -> None:
        room = RecallRoom(each=MOST_TOKENS, left=_UNLIMITED)
        self._ledger = ledger
        self._count = tokenizer.count
        self._tools = RecallTools(lambda: ledger, tokenizer=tokenizer, room=lambda: room, search=search)
        self._handles = visible_handles(ledger.view.items)

    def get_back(self, use: LaterUse, words: str) -> UseOutcome:
        """Try one way after the other until an answer of recall contains the use."""
        number = use.origin.number
        if not self._is_kept(use):
            return self.gone(use, "not in the ledger")
        is_opened = False
        for way, answers in self._ways(number, words):
            tokens = 0
            for read, answer in enumerate(islice(answers, MOST_ANSWERS), start=1):
                tokens += self._count(answer)
                if find_words(use.text, answer) >= 0:
                    because: Because = "ranges" if way == "handle" and read > 1 else way
                    return UseOutcome(use=use, because=because, answers=read, tokens=tokens)
                is_opened = is_opened or _opens(answer, number)
        if is_opened:
            return self.gone(use, "not in what was read")
        return self.gone(use, "not found" if words else "no words")

    def _is_kept(self, use: LaterUse) -> bool:
        number = use.origin.number
        if number > len(self._ledger.messages):
            return False
        return any(find_words(use.text, text) >= 0 for text in texts_of(self._ledger.message(number)))

    def gone(self, use: LaterUse, because: Because) -> UseOutcome:
        """Return that a use is out of reach: the tool has to run again."""
        return UseOutcome(use=use, because=because, tokens=self._count(use.origin.text))

    def _ways(self, number: int, words: str) -> Iterator[tuple[Because, Iterator[str]]]:
        """Yield the ways to ask for a message, each with what recall answers, to be read as far as needed."""
        leading = [handle for handle in self._handles if handle.leads_to(number)]
        for handle in leading:
            if handle.is_single:
                yield "handle", self._ranges(handle, words)
        yield "summary", (self._expand(handle, words) for handle in leading if not handle.is_single)
        if words:
            yield "search", self._found(number, words)

    def _found(self, number: int, words: str) -> Iterator[str]:
        """Yield what a search finds, and the message if it is among that."""
        matches = self._tools.handle(SEARCH, {"query": words, "limit": MOST_ANSWERS})
        yield matches
        if _opens(matches, number):
            yield self._expand(Handle(first=number, last=number), words)

    def _ranges(self, handle: Handle, words: str) -> Iterator[str]:
        """Yield a message in parts: the one around the words if it does not fit as a whole, then from its start."""
        if words and not self._fits(handle):
            yield self._expand(handle, words)
        rest: dict[str, list[int]] | None = {}
        while rest is not None:
            answer = self._tools.handle(EXPAND, {"handle": str(handle), **rest})
            yield answer
            left = _GO_ON.search(answer)
            rest = {left[1]: [int(left[2]), int(left[3])]} if left else None

    def _expand(self, handle: Handle, words: str) -> str:
        """Return what a handle leads to: all of it if that fits, else what stands around the words."""
        around = {"around": words} if words and not self._fits(handle) else {}
        return self._tools.handle(EXPAND, {"handle": str(handle), **around})

    def _fits(self, handle: Handle) -> bool:
        messages = self._ledger.messages[handle.first - 1 : handle.last]
        return sum(numbered.tokens for numbered in messages) <= MOST_TOKENS


def _opens(answer: str, number: int) -> bool:
    """Return whether a message is among the matches in an answer, or has a part of it there."""
    return str(number) in _CAPTION.findall(answer)


class Scorer:
    """Looks for a session's uses in the views it is played with; give it the ledger before each call.

    `messages` are all of the session, numbered as in the ledger. The uses of an answer are looked for once, before the call
    it came from; messages of the assistant that follow each other are one answer. Where recall is not offered, everything
    that is not in view is gone.
    """

    def __init__(
        self,
        uses: Sequence[LaterUse],
        messages: Sequence[Message],
        *,
        tokenizer: Tokenizer,
        offers_recall: bool = True,
    ) -> None:
        self._messages = messages
        self._tokenizer = tokenizer
        self._offers_recall = offers_recall
        self._left = sorted(uses, key=lambda use: use.number, reverse=True)

    def at(self, ledger: Ledger, search: Search | None = None) -> list[UseOutcome]:
        """Return where each use of the answer that comes next is; the ledger's view is what is sent for it.

        `search` is that of the session's store as it is now; without it all messages are read.
        """
        due = self._due(len(ledger.messages) + 1)
        if not due:
            return []
        visible = _visible(due, ledger.view)
        replaced = {item.number: item for item in ledger.view.items if isinstance(item, Original | Edited)}
        summarised = {
            use.origin.number for use in due if _is_summarised(use.origin.number, ledger.view.items)
        } - replaced.keys()
        lost = [use for use in due if use.text not in visible]
        sight = Sight(ledger.view.messages) if lost else Sight(())
        reach = Reach(ledger, search, self._tokenizer) if lost else None
        found: list[UseOutcome] = []
        for use in due:
            number = use.origin.number
            is_summarised = number in summarised
            if use.text in visible or reach is None:
                found.append(UseOutcome(use=use, because="shown", is_summarised=is_summarised))
                continue
            outcome = (
                reach.get_back(use, words_for(use, self._messages, sight))
                if self._offers_recall
                else reach.gone(use, "not offered")
            )
            lost_to: LostTo = "summary" if is_summarised else "dropped"
            if number in replaced:
                lost_to = _way_replaced(use.origin.text, replaced[number])
            found.append(replace(outcome, lost_to=lost_to, is_summarised=is_summarised))
        return found

    def _due(self, number: int) -> list[LaterUse]:
        """Take the uses of the answer that begins with message `number`; what came before had no call of its own."""
        last = number
        while last < len(self._messages) and self._messages[last].role == "assistant":
            last += 1
        due: list[LaterUse] = []
        while self._left and self._left[-1].number <= last:
            use = self._left.pop()
            if use.number >= number:
                due.append(use)
        return due


def _is_summarised(number: int, items: Iterable[Item]) -> bool:
    """Return whether a message is among the sources of a summary."""
    return any(
        span.first <= number <= span.last
        for item in items
        if isinstance(item, Summary)
        for span in item.sources
    )


def _way_replaced(result: str, item: Original | Edited) -> LostTo:
    """Return how a result of a message was replaced: one that is shortened keeps its first line, or most of it."""
    beginning = result.lstrip()[:_BEGINNING]
    is_begun = any(each.text.lstrip().startswith(beginning) for each in item.message.results)
    return "shortened" if is_begun else "elided"


def _visible(uses: Sequence[LaterUse], view: View) -> set[str]:
    """Return the texts of the uses that are in a view."""
    if not uses:
        return set()
    # No message but its origin has the text, so that beside that only what compactions wrote is to be read.
    originals = {item.number for item in view.items if isinstance(item, Original)}
    written = [
        text for item in view.items if not isinstance(item, Original) for text in texts_of(item.message)
    ]
    return {
        use.text
        for use in uses
        if use.origin.number in originals or any(find_words(use.text, text) >= 0 for text in written)
    }
