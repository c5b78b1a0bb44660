"""Hiding recall in Anthropic's answers: blocks are left out and the others numbered anew."""

from typing import Any

from lowwater.core.recall.recalled import is_recall
from lowwater.core.strict_json import read_plain, write_json

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class AnthropicHiding:
    """One answer out of several messages.

    Thinking that came behind something recalled is left out: it is bound to what the client will never send back.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._visible: dict[int, int] = {}
        """Of the present message: the client's numbers of the blocks that it sees."""
        self._shown = 0
        self._has_calls = False
        self._hides_calls = False
        self._held: list[dict[str, Any]] = []
        self._wholes: list[dict[str, Any]] = []

    def take(self, event: bytes) -> list[bytes]:
        """Take one event and return what the client sees of it now."""
        if event.strip() == b"[DONE]":
            return []
        told: dict[str, Any] = read_plain(event)
        match told.get("type"):
            case "message_start":
                return _pass(told) if self._is_first else []
            case "content_block_start":
                return self._begin(told)
            case "content_block_delta" | "content_block_stop":
                number = self._visible.get(told["index"])
                return [] if number is None else _pass(told | {"index": number})
            case "message_delta" | "message_stop":
                self._held.append(told)
                return []
            case _:
                return _pass(told)

    def again(self) -> None:
        """Take note that another message follows."""
        self._is_first, self._hides_calls = False, False
        self._visible, self._held = {}, []

    def whole(self, answer: bytes) -> None:
        """Take a whole message."""
        told: dict[str, Any] = read_plain(answer)
        seen = [block for block in told["content"] if self._is_seen(block)]
        self._wholes.append(told | {"content": seen})

    def is_waiting(self) -> bool:
        """Return whether nothing but recall was called."""
        return self._hides_calls and not self._has_calls

    def end(self) -> list[bytes]:
        """Return the end of the last message; one that only recalled has ended its turn for the client."""
        told = []
        for event in self._held:
            delta = event.get("delta")
            if isinstance(delta, dict) and self.is_waiting() and delta.get("stop_reason") == "tool_use":
                event["delta"] = delta | {"stop_reason": "end_turn"}
            told += _pass(event)
        return told

    def broken_off(self, error: dict[str, Any]) -> list[bytes]:
        """Return the event of an error; nothing comes behind it."""
        return _pass({"type": "error", "error": error})

    def answer(self) -> bytes:
        """Return the messages as one: the content of all, and everything else of the last."""
        content = [block for whole in self._wholes for block in whole["content"]]
        last = dict(self._wholes[-1])
        if self.is_waiting() and last.get("stop_reason") == "tool_use":
            last["stop_reason"] = "end_turn"
        return write_json(last | {"id": self._wholes[0].get("id"), "content": content})

    def _begin(self, told: dict[str, Any]) -> list[bytes]:
        if not self._is_seen(told["content_block"]):
            return []
        self._visible[told["index"]] = self._shown
        self._shown += 1
        return _pass(told | {"index": self._visible[told["index"]]})

    def _is_seen(self, block: dict[str, Any]) -> bool:
        if block.get("type") == "tool_use":
            hidden = is_recall(block.get("name", ""))
            self._hides_calls = self._hides_calls or hidden
            self._has_calls = self._has_calls or not hidden
            return not hidden
        return self._is_first or block.get("type") not in _THOUGHTS


def _pass(told: dict[str, Any]) -> list[bytes]:
    return [b"event: " + told["type"].encode() + b"\ndata: " + write_json(told) + b"\n\n"]
