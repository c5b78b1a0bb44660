"""The recall tools of one session, which the model calls; usable from any thread."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from lowwater.core.events import Compaction
from lowwater.core.ledger import Ledger
from lowwater.core.recall.recalled import anthropic_tools, openai_tools
from lowwater.core.recall.search import AROUND_RESULT, RecallRoom, Search
from lowwater.core.recall.tools import (
    CompactArguments,
    PinArguments,
    SearchArguments,
    answer_compact,
    answer_expand,
    answer_search,
    read_recall_arguments,
)
from lowwater.core.tools import COMPACT, EXPAND, PIN, SEARCH
from lowwater.core.view import Summary
from lowwater.errors import BadInput
from lowwater.protocols import Tokenizer
from lowwater.session.async_twins import async_twin
from lowwater.session.recall_tally import RecallAnswer, RecallTally

_NOTHING = "Nothing recalled"
_NO_ROOM = (
    f"{_NOTHING}: there is no room left in the window for it; go on with what is visible, or ask again later for less, such as "
    "around certain words."
)


_PROPOSED = "Proposed. It stands nowhere until the user confirms it: ask them, if it matters now."
_CANNOT_COMPACT = "Nothing compacted: that is not done here on request."
_CANNOT_PROPOSE = "Nothing proposed: tell the user instead what you would keep in view."


class RecallTools:
    """`lowwater_search`, `lowwater_expand` and `lowwater_pin` for one session, and `lowwater_compact` where it is asked for.

    Any thread may call them. `ledger` and `room` are called anew each time. Without a `search` all messages are read; `propose` is given what the model
    proposes to pin, and `compact` compacts for it. Answers to several calls in one
    message share the room that is left, because none of them is in the ledger yet. A `tally` counts the calls.
    """

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        *,
        tokenizer: Tokenizer,
        room: Callable[[], RecallRoom],
        search: Search | None = None,
        tally: RecallTally | None = None,
        propose: Callable[[str], None] | None = None,
        compact: Callable[[str], Compaction | None] | None = None,
        offers_compact: bool = False,
    ) -> None:
        self._ledger = ledger
        self._tokenizer = tokenizer
        self._count = tokenizer.count
        self._room = room
        self._search = search
        self._tally = tally
        self._propose = propose
        self._compact = compact
        self._offers_compact = offers_compact
        self._lock = Lock()
        self._answering = 0
        self._given = 0

    @property
    def with_compact(self) -> "RecallTools":
        """The same tools and `lowwater_compact`, by which the model can have the conversation compacted."""
        return RecallTools(
            self._ledger,
            tokenizer=self._tokenizer,
            room=self._room,
            search=self._search,
            tally=self._tally,
            propose=self._propose,
            compact=self._compact,
            offers_compact=True,
        )

    @property
    def openai(self) -> list[dict[str, Any]]:
        """The tools to add to a chat request; always the same bytes."""
        return openai_tools(compact=self._offers_compact)

    @property
    def anthropic(self) -> list[dict[str, Any]]:
        """The tools to add to a Messages request; always the same bytes."""
        return anthropic_tools(compact=self._offers_compact)

    def owns(self, name: str) -> bool:
        """Return whether a tool of this name is answered by `handle`."""
        return name in (SEARCH, EXPAND, PIN) or (name == COMPACT and self._offers_compact)

    def handle(self, name: str, arguments: Mapping[str, object] | str | bytes) -> str:
        """Return the answer to a tool call; a mistake of the model is answered with a sentence that says what to change."""
        ledger = self._ledger()
        with self._lock:
            newest = _newest_answer(ledger)
            if newest != self._answering:
                self._answering, self._given = newest, 0
            room = self._room()
            left = room.left - self._given - AROUND_RESULT
            answer = self._answer(ledger, name, arguments, min(room.each, left))
            self._given += self._count(answer) + AROUND_RESULT
        if self._tally is not None and name in (SEARCH, EXPAND):
            asked = arguments if isinstance(arguments, str) else str(arguments)
            found = RecallAnswer(asked=asked, given=answer, view=ledger.view)
            self._tally.add(name, None if answer.startswith(_NOTHING) else found)
        return answer

    ahandle = async_twin(handle)

    def _answer(self, ledger: Ledger, name: str, arguments: object, tokens: int) -> str:
        try:
            read = read_recall_arguments(name, arguments)
            if isinstance(read, PinArguments):
                if self._propose is None:
                    return _CANNOT_PROPOSE
                self._propose(read.text)
                return _PROPOSED
            if isinstance(read, CompactArguments):
                if self._compact is None or not self._offers_compact:
                    return _CANNOT_COMPACT
                return answer_compact(self._compact(read.focus))
            if tokens <= 0:
                return _NO_ROOM
            if isinstance(read, SearchArguments):
                answer = answer_search(ledger, read, self._search, tokens, self._count)
            else:
                answer = answer_expand(ledger, read, tokens, self._count)
        except BadInput as error:
            what = {PIN: "Nothing proposed", COMPACT: "Nothing compacted"}
            return f"{next((said for tool, said in what.items() if name.endswith(tool)), _NOTHING)}: {error}."
        return _NO_ROOM if answer is None else answer


def _newest_answer(ledger: Ledger) -> int:
    """Return the number of the newest message of the model, 0 if there is none."""
    items = ledger.view.items
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.message.role == "assistant" and not isinstance(item, Summary):
            return item.number
    return 0
