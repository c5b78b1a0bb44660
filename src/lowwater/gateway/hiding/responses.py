"""Hiding recall in the Responses API: items are left out and the others numbered anew."""

from typing import Any

from lowwater.core.recall.recalled import is_recall
from lowwater.core.strict_json import read_plain, write_json

_ONCE = frozenset({"response.created", "response.in_progress", "response.queued"})
_LAST = frozenset({"response.completed", "response.incomplete"})


class ResponsesHiding:
    """One response out of several, under the id of the first.

    Reasoning that came behind something recalled is left out: it belongs to items that the client will never send back.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._first: dict[str, Any] = {}
        self._numbers: dict[int, int] = {}
        self._shown = 0
        self._sequence = 0
        self._has_calls = False
        self._hides_calls = False
        self._held: list[dict[str, Any]] = []
        self._items: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}

    def take(self, event: bytes) -> list[bytes]:
        """Take one event and return what the client sees of it now."""
        if event.strip() == b"[DONE]":
            return []
        told: dict[str, Any] = read_plain(event)
        kind = told.get("type", "")
        if kind in _ONCE:
            self._first = self._first or told.get("response") or {}
            return self._pass(told) if self._is_first else []
        if kind in _LAST:
            self._held.append(told)
            return []
        if "output_index" not in told:
            return self._pass(told)
        index = told["output_index"]
        if kind == "response.output_item.added" and self._is_seen(told["item"]):
            self._numbers[index] = self._shown
            self._shown += 1
        number = self._numbers.get(index)
        return [] if number is None else self._pass(told | {"output_index": number})

    def again(self) -> None:
        """Take note that another response follows."""
        self._is_first, self._hides_calls = False, False
        self._numbers, self._held = {}, []

    def whole(self, answer: bytes) -> None:
        """Take a whole response."""
        told: dict[str, Any] = read_plain(answer)
        self._first, self._last = self._first or told, told
        self._items += [item for item in told["output"] if self._is_seen(item)]

    def is_waiting(self) -> bool:
        """Return whether nothing but recall was called."""
        return self._hides_calls and not self._has_calls

    def end(self) -> list[bytes]:
        """Return the end of the last response, with what the client saw of all."""
        told = []
        for event in self._held:
            told += self._pass(event | {"response": self._together(event.get("response") or {})})
        return told

    def broken_off(self, error: dict[str, Any]) -> list[bytes]:
        """Return the error, which OpenAI's clients raise, and behind it the response that failed, which Codex reads."""
        said = {
            "code": error.get("code") or error.get("type") or "server_error",
            "message": error.get("message"),
        }
        failed = self._together(self._first) | {"status": "failed", "error": said}
        event = said | {"type": "error", "param": error.get("param"), "error": error}
        return self._pass(event) + self._pass({"type": "response.failed", "response": failed})

    def answer(self) -> bytes:
        """Return the responses as one."""
        return write_json(self._together(self._last))

    def _together(self, last: dict[str, Any]) -> dict[str, Any]:
        return last | {"id": self._first.get("id", last.get("id")), "output": self._items}

    def _is_seen(self, item: dict[str, Any]) -> bool:
        kind = item.get("type", "")
        if kind.endswith("_call"):
            hidden = is_recall(item.get("name") or "")
            self._hides_calls = self._hides_calls or hidden
            self._has_calls = self._has_calls or not hidden
            return not hidden
        return self._is_first or kind != "reasoning"

    def _pass(self, told: dict[str, Any]) -> list[bytes]:
        told = told | {"sequence_number": self._sequence}
        self._sequence += 1
        return [b"event: " + told["type"].encode() + b"\ndata: " + write_json(told) + b"\n\n"]
