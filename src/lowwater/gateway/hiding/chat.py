"""Hiding recall in chat completions: calls are left out and the others numbered anew."""

from typing import Any

from lowwater.core.recall.recalled import is_recall
from lowwater.core.strict_json import read_plain, write_json


class ChatHiding:
    """One answer out of several completions, under the id of the first."""

    def __init__(self) -> None:
        self._is_first = True
        self._id: object = None
        self._hidden: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._has_calls = False
        self._hides_calls = False
        self._held: list[dict[str, Any]] = []
        self._wholes: list[dict[str, Any]] = []

    def take(self, event: bytes) -> list[bytes]:
        """Take one chunk and return what the client sees of it now."""
        if event.strip() == b"[DONE]":
            return []
        told: dict[str, Any] = read_plain(event)
        self._id = self._id or told.get("id")
        told = told | {"id": self._id}
        choices = told.get("choices") or []
        if told.get("error"):
            return _pass(told)
        if not choices or choices[0].get("finish_reason"):
            self._held.append(told | ({"choices": [self._seen(choices[0])]} if choices else {}))
            return []
        seen = self._seen(choices[0])
        delta = seen.get("delta") or {}
        if delta != (choices[0].get("delta") or {}) and not _says_something(delta):
            return []
        if not self._is_first and set(delta) <= {"role"}:
            return []
        return _pass(told | {"choices": [seen]})

    def again(self) -> None:
        """Take note that another completion follows."""
        self._is_first, self._hides_calls = False, False
        self._hidden, self._numbers, self._held = set(), {}, []

    def whole(self, answer: bytes) -> None:
        """Take a whole completion."""
        told: dict[str, Any] = read_plain(answer)
        message = dict(told["choices"][0]["message"])
        calls = message.get("tool_calls") or []
        kept = [call for call in calls if not self._is_recall(call)]
        if len(kept) < len(calls):
            message["tool_calls"] = kept
            if not kept:
                del message["tool_calls"]
        self._wholes.append(told | {"choices": [told["choices"][0] | {"message": message}]})

    def is_waiting(self) -> bool:
        """Return whether nothing but recall was called."""
        return self._hides_calls and not self._has_calls

    def end(self) -> list[bytes]:
        """Return the end of the last completion; one that only recalled has stopped for the client."""
        told = []
        for chunk in self._held:
            choices = chunk.get("choices") or []
            if choices and self.is_waiting() and choices[0].get("finish_reason") == "tool_calls":
                chunk["choices"] = [choices[0] | {"finish_reason": "stop"}]
            told += _pass(chunk)
        return [*told, b"data: [DONE]\n\n"]

    def broken_off(self, error: dict[str, Any]) -> list[bytes]:
        """Return the chunk of an error; the stream is not done, and does not say so."""
        return _pass({"error": error})

    def answer(self) -> bytes:
        """Return the completions as one: the texts of all, and everything else of the last."""
        first, last = self._wholes[0], self._wholes[-1]
        messages = [whole["choices"][0]["message"] for whole in self._wholes]
        texts = [message["content"] for message in messages if message.get("content")]
        message = messages[-1] | {"content": "".join(texts) or None}
        choice = last["choices"][0] | {"message": message}
        if self.is_waiting() and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        return write_json(last | {"id": first.get("id"), "choices": [choice]})

    def _seen(self, choice: dict[str, Any]) -> dict[str, Any]:
        delta = dict(choice.get("delta") or {})
        if not delta.get("tool_calls"):
            return choice
        kept = []
        for call in delta["tool_calls"]:
            index = call.get("index", 0)
            if index not in self._numbers and index not in self._hidden:
                if self._is_recall(call):
                    self._hidden.add(index)
                else:
                    self._numbers[index] = len(self._numbers)
            if index in self._numbers:
                kept.append(call | {"index": self._numbers[index]})
        delta["tool_calls"] = kept
        if not kept:
            del delta["tool_calls"]
        return choice | {"delta": delta}

    def _is_recall(self, call: dict[str, Any]) -> bool:
        hidden = is_recall((call.get("function") or {}).get("name") or "")
        self._hides_calls = self._hides_calls or hidden
        self._has_calls = self._has_calls or not hidden
        return hidden


def _says_something(delta: dict[str, Any]) -> bool:
    return any(value for name, value in delta.items() if name != "role")


def _pass(told: dict[str, Any]) -> list[bytes]:
    return [b"data: " + write_json(told) + b"\n\n"]
