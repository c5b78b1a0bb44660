"""Getting back what left the view with the real recall tools, as a model could: a few answers, each of limited size.

The handle of a message that is visible is expanded: whole if that fits into one answer; else around the words at hand, and
then from the start, as the answers themselves say how to go on. The handles of several messages are asked around the
words. Of a search the first five matches count, expanded once. No way takes more than five answers.
"""

import re
from collections.abc import Iterator
from itertools import islice

from lowwater.core.ledger import Ledger
from lowwater.core.messages import texts_of
from lowwater.core.recall.recalled import EXPAND, SEARCH
from lowwater.core.recall.search import Room, Search
from lowwater.protocols import Tokenizer
from lowwater.replay.references.finding import find
from lowwater.replay.references.handles import Handle, visible_handles
from lowwater.replay.references.outcome import Because, Outcome
from lowwater.replay.references.uses import Use
from lowwater.session.recall_tools import RecallTools

MOST_TOKENS = 4_000
"""Of one answer."""
MOST_ANSWERS = 5
"""By one way: ranges of a message, handles, or matches of a search."""

_UNLIMITED = 10**9
_CAPTION = re.compile(r"^\[?lw:(\d+) · ", re.MULTILINE)
_GO_ON = re.compile(r"go on with (lines|characters) \[(\d+), (\d+)\]\]$")


class Reach:
    """What recall can get back at one moment of a session."""

    def __init__(self, ledger: Ledger, search: Search | None, tokenizer: Tokenizer) -> None:
        room = Room(each=MOST_TOKENS, left=_UNLIMITED)
        self._ledger = ledger
        self._count = tokenizer.count
        self._tools = RecallTools(lambda: ledger, tokenizer=tokenizer, room=lambda: room, search=search)
        self._handles = visible_handles(ledger.view.items)

    def get_back(self, use: Use, words: str) -> Outcome:
        """Ask for a use by one way after the other until an answer has it."""
        number = use.origin.number
        if not self._is_kept(use):
            return self._gone(use, "not in the ledger")
        is_opened = False
        for way, answers in self._ways(number, words):
            tokens = 0
            for read, answer in enumerate(islice(answers, MOST_ANSWERS), start=1):
                tokens += self._count(answer)
                if find(use.text, answer) >= 0:
                    because: Because = "ranges" if way == "handle" and read > 1 else way
                    return Outcome(use=use, because=because, answers=read, tokens=tokens)
                is_opened = is_opened or _opens(answer, number)
        if is_opened:
            return self._gone(use, "not in what was read")
        return self._gone(use, "not found" if words else "no words")

    def _is_kept(self, use: Use) -> bool:
        number = use.origin.number
        if number > len(self._ledger.messages):
            return False
        return any(find(use.text, text) >= 0 for text in texts_of(self._ledger.message(number)))

    def _gone(self, use: Use, because: Because) -> Outcome:
        return Outcome(use=use, because=because, tokens=self._count(use.origin.text))

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
