"""Recall as tools for the model, for one session and any thread."""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from lowwater.core.ledger import Ledger
from lowwater.core.recall.recalled import EXPAND, SEARCH, anthropic_tools, openai_tools
from lowwater.core.recall.search import AROUND_RESULT, Room, Search
from lowwater.core.recall.tools import SearchArguments, answer_expand, answer_search, read_arguments
from lowwater.core.view import Summary
from lowwater.errors import BadInput
from lowwater.protocols import Tokenizer

_NO_ROOM = (
    "Nothing recalled: there is no room left in the window for it; go on with what is visible, or ask again later for less, such as "
    "around certain words."
)


class RecallTools:
    """`lowwater_search` and `lowwater_expand` for one session; any thread may call them.

    `ledger` and `room` are asked at every call. Without a `search` all messages are read. Several answers to one message
    of the model share what is left to the wall, for none of them is in the ledger yet.
    """

    def __init__(
        self,
        ledger: Callable[[], Ledger],
        *,
        tokenizer: Tokenizer,
        room: Callable[[], Room],
        search: Search | None = None,
    ) -> None:
        self._ledger = ledger
        self._count = tokenizer.count
        self._room = room
        self._search = search
        self._lock = Lock()
        self._answering = 0
        self._given = 0

    @property
    def openai(self) -> list[dict[str, Any]]:
        """What to add to `tools` of a chat request; always the same bytes."""
        return openai_tools()

    @property
    def anthropic(self) -> list[dict[str, Any]]:
        """What to add to `tools` of a Messages request; always the same bytes."""
        return anthropic_tools()

    def owns(self, name: str) -> bool:
        """Return whether a tool call is to be answered here."""
        return name in (SEARCH, EXPAND)

    def handle(self, name: str, arguments: Mapping[str, object] | str | bytes) -> str:
        """Return the answer to a tool call; what the model got wrong becomes a sentence that says what to change."""
        ledger = self._ledger()
        with self._lock:
            newest = _newest_answer(ledger)
            if newest != self._answering:
                self._answering, self._given = newest, 0
            room = self._room()
            left = room.left - self._given - AROUND_RESULT
            answer = self._answer(ledger, name, arguments, min(room.each, left))
            self._given += self._count(answer) + AROUND_RESULT
            return answer

    def _answer(self, ledger: Ledger, name: str, arguments: object, tokens: int) -> str:
        try:
            asked = read_arguments(name, arguments)
            if tokens <= 0:
                return _NO_ROOM
            if isinstance(asked, SearchArguments):
                told = answer_search(ledger, asked, self._search, tokens, self._count)
            else:
                told = answer_expand(ledger, asked, tokens, self._count)
        except BadInput as error:
            return f"Nothing recalled: {error}."
        return _NO_ROOM if told is None else told


def _newest_answer(ledger: Ledger) -> int:
    """Return the number of the newest message of the model, 0 if it has not said anything yet."""
    items = ledger.view.items
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.message.role == "assistant" and not isinstance(item, Summary):
            return item.number
    return 0
