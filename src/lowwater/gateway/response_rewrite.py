"""Answers as a client sees them that knows nothing of recall: several of the provider's become one."""

from types import MappingProxyType
from typing import Any, Protocol

from lowwater.core.messages import Format
from lowwater.core.recall.recalled import is_recall
from lowwater.core.strict_json import read_plain, write_json

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class AnthropicRewrite:
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


class ChatRewrite:
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
            return _pass_chunk(told)
        if not choices or choices[0].get("finish_reason"):
            self._held.append(told | ({"choices": [self._seen(choices[0])]} if choices else {}))
            return []
        seen = self._seen(choices[0])
        delta = seen.get("delta") or {}
        if delta != (choices[0].get("delta") or {}) and not _says_something(delta):
            return []
        if not self._is_first and set(delta) <= {"role"}:
            return []
        return _pass_chunk(told | {"choices": [seen]})

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
            told += _pass_chunk(chunk)
        return [*told, b"data: [DONE]\n\n"]

    def broken_off(self, error: dict[str, Any]) -> list[bytes]:
        """Return the chunk of an error; the stream is not done, and does not say so."""
        return _pass_chunk({"error": error})

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


def _pass_chunk(told: dict[str, Any]) -> list[bytes]:
    return [b"data: " + write_json(told) + b"\n\n"]


_ONCE = frozenset({"response.created", "response.in_progress", "response.queued"})
_LAST = frozenset({"response.completed", "response.incomplete"})


class ResponsesRewrite:
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


class ResponseRewrite(Protocol):
    """Takes the answers of one exchange, one behind the other, and gives what the client sees of them."""

    def take(self, event: bytes) -> list[bytes]:
        """Take the data of one event and return the bytes to pass on now; what may have to change is held back."""
        ...

    def again(self) -> None:
        """Take note that another answer follows, which goes on from what was recalled."""
        ...

    def whole(self, answer: bytes) -> None:
        """Take a whole answer instead of its events."""
        ...

    def is_waiting(self) -> bool:
        """Return whether the answer so far ends with nothing but recall calls."""
        ...

    def end(self) -> list[bytes]:
        """Return what was held back: the end of a stream."""
        ...

    def broken_off(self, error: dict[str, Any]) -> list[bytes]:
        """Return the end of a stream that cannot go on: what the provider says went wrong, so that its client raises it."""
        ...

    def answer(self) -> bytes:
        """Return what the client has seen as one whole answer."""
        ...


_HIDING: MappingProxyType[Format, type[ResponseRewrite]] = MappingProxyType(
    {"anthropic": AnthropicRewrite, "openai_chat": ChatRewrite, "openai_responses": ResponsesRewrite}
)


def hiding_for(format: Format) -> ResponseRewrite:
    """Return what hides recall in answers of this format."""
    return _HIDING[format]()
