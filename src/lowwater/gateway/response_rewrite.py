"""Hides recall from clients: the provider's answers before and after a recall become the one answer that the client sees."""

from types import MappingProxyType
from typing import Any, Protocol

from lowwater.core.messages import Format
from lowwater.core.strict_json import read_plain, write_json
from lowwater.core.tools import is_recall

_THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})
_FIRST_EVENTS = frozenset({"response.created", "response.in_progress", "response.queued"})
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete"})


class ResponseRewrite(Protocol):
    """Takes the answers of one exchange one after the other and returns what the client sees of them."""

    def feed_event(self, event: bytes) -> list[bytes]:
        """Take the data of one event and return the bytes to pass on now; what may still change is held back."""
        ...

    def next_answer(self) -> None:
        """Take note that another answer follows, which continues from what was recalled."""
        ...

    def add_answer(self, answer: bytes) -> None:
        """Take a complete answer."""
        ...

    def only_recalled(self) -> bool:
        """Return whether the current answer calls recall tools, and no other tool was called."""
        ...

    def end(self) -> list[bytes]:
        """Return what was held back: the end of a stream."""
        ...

    def fail(self, error: dict[str, Any]) -> list[bytes]:
        """Return the end of a stream that cannot go on: the provider's error in a form that makes the client raise it."""
        ...

    def answer(self) -> bytes:
        """Return what the client has seen as one complete answer."""
        ...


class AnthropicRewrite:
    """Merges several of Anthropic's messages.

    Thinking that followed a recall is left out: its signature depends on blocks that the client will never send back.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._visible: dict[int, int] = {}
        """Visible blocks of the current message: from the provider's index to the client's."""
        self._shown_count = 0
        self._has_calls = False
        self._hides_calls = False
        self._held: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []

    def feed_event(self, event: bytes) -> list[bytes]:
        """Take one event and return what the client sees of it now."""
        if event.strip() == b"[DONE]":
            return []
        fields: dict[str, Any] = read_plain(event)
        match fields.get("type"):
            case "message_start":
                return _write_event(fields) if self._is_first else []
            case "content_block_start":
                return self._begin(fields)
            case "content_block_delta" | "content_block_stop":
                number = self._visible.get(fields["index"])
                return [] if number is None else _write_event(fields | {"index": number})
            case "message_delta" | "message_stop":
                self._held.append(fields)
                return []
            case _:
                return _write_event(fields)

    def next_answer(self) -> None:
        """Take note that another message follows."""
        self._is_first, self._hides_calls = False, False
        self._visible, self._held = {}, []

    def add_answer(self, answer: bytes) -> None:
        """Take a complete message."""
        decoded: dict[str, Any] = read_plain(answer)
        visible = [block for block in decoded["content"] if self._is_visible(block)]
        self._answers.append(decoded | {"content": visible})

    def only_recalled(self) -> bool:
        """Return whether the current answer calls recall tools, and no other tool was called."""
        return self._hides_calls and not self._has_calls

    def end(self) -> list[bytes]:
        """Return the end of the last message; if it only called recall, the client sees it as an end of the turn."""
        events = []
        for event in self._held:
            delta = event.get("delta")
            if isinstance(delta, dict) and self.only_recalled() and delta.get("stop_reason") == "tool_use":
                event["delta"] = delta | {"stop_reason": "end_turn"}
            events += _write_event(event)
        return events

    def fail(self, error: dict[str, Any]) -> list[bytes]:
        """Return an error event, which ends the stream."""
        return _write_event({"type": "error", "error": error})

    def answer(self) -> bytes:
        """Return the messages as one: the content of all, and everything else of the last."""
        content = [block for answer in self._answers for block in answer["content"]]
        last = dict(self._answers[-1])
        if self.only_recalled() and last.get("stop_reason") == "tool_use":
            last["stop_reason"] = "end_turn"
        return write_json(last | {"id": self._answers[0].get("id"), "content": content})

    def _begin(self, fields: dict[str, Any]) -> list[bytes]:
        if not self._is_visible(fields["content_block"]):
            return []
        self._visible[fields["index"]] = self._shown_count
        self._shown_count += 1
        return _write_event(fields | {"index": self._visible[fields["index"]]})

    def _is_visible(self, block: dict[str, Any]) -> bool:
        if block.get("type") == "tool_use":
            hidden = is_recall(block.get("name", ""))
            self._hides_calls = self._hides_calls or hidden
            self._has_calls = self._has_calls or not hidden
            return not hidden
        return self._is_first or block.get("type") not in _THINKING_TYPES


def _write_event(fields: dict[str, Any]) -> list[bytes]:
    return [b"event: " + fields["type"].encode() + b"\ndata: " + write_json(fields) + b"\n\n"]


class ChatRewrite:
    """Merges several of OpenAI's chat completions, under the id of the first."""

    def __init__(self) -> None:
        self._is_first = True
        self._id: object = None
        self._hidden: set[int] = set()
        self._numbers: dict[int, int] = {}
        self._has_calls = False
        self._hides_calls = False
        self._held: list[dict[str, Any]] = []
        self._answers: list[dict[str, Any]] = []

    def feed_event(self, event: bytes) -> list[bytes]:
        """Take one chunk and return what the client sees of it now."""
        if event.strip() == b"[DONE]":
            return []
        fields: dict[str, Any] = read_plain(event)
        self._id = self._id or fields.get("id")
        fields = fields | {"id": self._id}
        choices = fields.get("choices") or []
        if fields.get("error"):
            return _write_chunk(fields)
        if not choices or choices[0].get("finish_reason"):
            self._held.append(fields | ({"choices": [self._visible_choice(choices[0])]} if choices else {}))
            return []
        visible = self._visible_choice(choices[0])
        delta = visible.get("delta") or {}
        if delta != (choices[0].get("delta") or {}) and not _has_content(delta):
            return []
        if not self._is_first and set(delta) <= {"role"}:
            return []
        return _write_chunk(fields | {"choices": [visible]})

    def next_answer(self) -> None:
        """Take note that another completion follows."""
        self._is_first, self._hides_calls = False, False
        self._hidden, self._numbers, self._held = set(), {}, []

    def add_answer(self, answer: bytes) -> None:
        """Take a complete completion."""
        decoded: dict[str, Any] = read_plain(answer)
        message = dict(decoded["choices"][0]["message"])
        calls = message.get("tool_calls") or []
        kept = [call for call in calls if not self._is_recall(call)]
        if len(kept) < len(calls):
            message["tool_calls"] = kept
            if not kept:
                del message["tool_calls"]
        self._answers.append(decoded | {"choices": [decoded["choices"][0] | {"message": message}]})

    def only_recalled(self) -> bool:
        """Return whether the current answer calls recall tools, and no other tool was called."""
        return self._hides_calls and not self._has_calls

    def end(self) -> list[bytes]:
        """Return the end of the last completion; if it only called recall, the client sees it as `stop`."""
        events = []
        for chunk in self._held:
            choices = chunk.get("choices") or []
            if choices and self.only_recalled() and choices[0].get("finish_reason") == "tool_calls":
                chunk["choices"] = [choices[0] | {"finish_reason": "stop"}]
            events += _write_chunk(chunk)
        return [*events, b"data: [DONE]\n\n"]

    def fail(self, error: dict[str, Any]) -> list[bytes]:
        """Return a chunk with the error; there is no `[DONE]` after it."""
        return _write_chunk({"error": error})

    def answer(self) -> bytes:
        """Return the completions as one: the texts of all, and everything else of the last."""
        first, last = self._answers[0], self._answers[-1]
        messages = [answer["choices"][0]["message"] for answer in self._answers]
        texts = [message["content"] for message in messages if message.get("content")]
        message = messages[-1] | {"content": "".join(texts) or None}
        choice = last["choices"][0] | {"message": message}
        if self.only_recalled() and choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"
        return write_json(last | {"id": first.get("id"), "choices": [choice]})

    def _visible_choice(self, choice: dict[str, Any]) -> dict[str, Any]:
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


def _has_content(delta: dict[str, Any]) -> bool:
    return any(value for name, value in delta.items() if name != "role")


def _write_chunk(fields: dict[str, Any]) -> list[bytes]:
    return [b"data: " + write_json(fields) + b"\n\n"]


class ResponsesRewrite:
    """Merges several of OpenAI's responses, under the id of the first.

    Reasoning that followed a recall is left out: it belongs to items that the client will never send back.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._first: dict[str, Any] = {}
        self._numbers: dict[int, int] = {}
        self._shown_count = 0
        self._sequence = 0
        self._has_calls = False
        self._hides_calls = False
        self._held: list[dict[str, Any]] = []
        self._items: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}

    def feed_event(self, event: bytes) -> list[bytes]:
        """Take one event and return what the client sees of it now."""
        if event.strip() == b"[DONE]":
            return []
        fields: dict[str, Any] = read_plain(event)
        kind = fields.get("type", "")
        if kind in _FIRST_EVENTS:
            self._first = self._first or fields.get("response") or {}
            return self._write_event(fields) if self._is_first else []
        if kind in _LAST_EVENTS:
            self._held.append(fields)
            return []
        if "output_index" not in fields:
            return self._write_event(fields)
        index = fields["output_index"]
        if kind == "response.output_item.added" and self._is_visible(fields["item"]):
            self._numbers[index] = self._shown_count
            self._shown_count += 1
        number = self._numbers.get(index)
        return [] if number is None else self._write_event(fields | {"output_index": number})

    def next_answer(self) -> None:
        """Take note that another response follows."""
        self._is_first, self._hides_calls = False, False
        self._numbers, self._held = {}, []

    def add_answer(self, answer: bytes) -> None:
        """Take a complete response."""
        decoded: dict[str, Any] = read_plain(answer)
        self._first, self._last = self._first or decoded, decoded
        self._items += [item for item in decoded["output"] if self._is_visible(item)]

    def only_recalled(self) -> bool:
        """Return whether the current answer calls recall tools, and no other tool was called."""
        return self._hides_calls and not self._has_calls

    def end(self) -> list[bytes]:
        """Return the end of the last response, with all items that the client saw."""
        events = []
        for event in self._held:
            events += self._write_event(event | {"response": self._merged(event.get("response") or {})})
        return events

    def fail(self, error: dict[str, Any]) -> list[bytes]:
        """Return an error event, which OpenAI's SDKs raise, and a failed response after it, which Codex reads."""
        detail = {
            "code": error.get("code") or error.get("type") or "server_error",
            "message": error.get("message"),
        }
        failed = self._merged(self._first) | {"status": "failed", "error": detail}
        event = detail | {"type": "error", "param": error.get("param"), "error": error}
        return self._write_event(event) + self._write_event({"type": "response.failed", "response": failed})

    def answer(self) -> bytes:
        """Return the responses as one."""
        return write_json(self._merged(self._last))

    def _merged(self, last: dict[str, Any]) -> dict[str, Any]:
        return last | {"id": self._first.get("id", last.get("id")), "output": self._items}

    def _is_visible(self, item: dict[str, Any]) -> bool:
        kind = item.get("type", "")
        if kind.endswith("_call"):
            hidden = is_recall(item.get("name") or "")
            self._hides_calls = self._hides_calls or hidden
            self._has_calls = self._has_calls or not hidden
            return not hidden
        return self._is_first or kind != "reasoning"

    def _write_event(self, fields: dict[str, Any]) -> list[bytes]:
        fields = fields | {"sequence_number": self._sequence}
        self._sequence += 1
        return [b"event: " + fields["type"].encode() + b"\ndata: " + write_json(fields) + b"\n\n"]


_REWRITES: MappingProxyType[Format, type[ResponseRewrite]] = MappingProxyType(
    {"anthropic": AnthropicRewrite, "openai_chat": ChatRewrite, "openai_responses": ResponsesRewrite}
)


def rewrite_for(format: Format) -> ResponseRewrite:
    """Return the rewrite for answers of a format."""
    return _REWRITES[format]()
