"""The recall tools of one session, which the model calls; usable from any thread."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from lowwater.core.ledger import Ledger
from lowwater.core.recall.recalled import anthropic_tools, openai_tools
from lowwater.core.recall.search import AROUND_RESULT, RecallRoom, Search
from lowwater.core.recall.tools import (
    PinArguments,
    SearchArguments,
    answer_expand,
    answer_search,
    read_recall_arguments,
)
from lowwater.core.tools import EXPAND, PIN, SEARCH
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
_CANNOT_PROPOSE = "Nothing proposed: tell the user instead what you would keep in view."


class RecallTools:
    """`lowwater_search`, `lowwater_expand` and `lowwater_pin` for one session; any thread may call them.

    `ledger` and `room` are called anew each time. Without a `search` all messages are read; `propose` is given what the model
    proposes to pin. Answers to several calls in one
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
    ) -> None:
        self._ledger = ledger
        self._count = tokenizer.count
        self._room = room
        self._search = search
        self._tally = tally
        self._propose = propose
        self._lock = Lock()
        self._answering = 0
        self._given = 0

    @property
    def openai(self) -> list[dict[str, Any]]:
        """The tools to add to a chat request; always the same bytes."""
        return openai_tools()

    @property
    def anthropic(self) -> list[dict[str, Any]]:
        """The tools to add to a Messages request; always the same bytes."""
        return anthropic_tools()

    def owns(self, name: str) -> bool:
        """Return whether a tool of this name is answered by `handle`."""
        return name in (SEARCH, EXPAND, PIN)

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
            if tokens <= 0:
                return _NO_ROOM
            if isinstance(read, SearchArguments):
                answer = answer_search(ledger, read, self._search, tokens, self._count)
            else:
                answer = answer_expand(ledger, read, tokens, self._count)
        except BadInput as error:
            return f"{'Nothing proposed' if name.endswith(PIN) else _NOTHING}: {error}."
        return _NO_ROOM if answer is None else answer


def _newest_answer(ledger: Ledger) -> int:
    """Return the number of the newest message of the model, 0 if there is none."""
    items = ledger.view.items
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.message.role == "assistant" and not isinstance(item, Summary):
            return item.number
    return 0
