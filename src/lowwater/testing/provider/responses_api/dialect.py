"""The Responses API as a whole: refuses by its rules, remembers, answers in items, bills as the provider does."""

from collections.abc import Iterator, Mapping

from lowwater.testing.provider.answers import CallTools, CutOff, DropConnection, Refuse, Say, Spoken, Think
from lowwater.testing.provider.caches import Machines, Used
from lowwater.testing.provider.dialect import Ids, write
from lowwater.testing.provider.openai.dialect import CREATED, ChatDialect
from lowwater.testing.provider.prompt import Prompt, prompt_tokens
from lowwater.testing.provider.responses_api.body import (
    content_of,
    item_pieces,
    items_of,
    kind_of,
    pieces,
    resolved,
    tools_in,
)
from lowwater.testing.provider.responses_api.conversation import led_by
from lowwater.testing.provider.responses_api.memory import Memory
from lowwater.testing.provider.responses_api.rules import rules
from lowwater.testing.provider.responses_api.sealing import Sealing
from lowwater.testing.provider.responses_api.stream import refused, stream
from lowwater.testing.provider.rule import Incoming, Json, Refusal, Violation

ENCRYPTED = "reasoning.encrypted_content"
_ECHOED: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}


class ResponsesDialect:
    """Speaks the Responses API."""

    request_id_header = "x-request-id"

    def __init__(self, *, ids: Ids, key: bytes, machines: Machines | None = None) -> None:
        self._ids = ids
        self._machines = machines or Machines()
        self._memory = Memory()
        self._sealing = Sealing(key)
        self._chat = ChatDialect(ids=ids)
        self.rules = rules(self._memory, self._sealing)

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        return self._chat.error(violation, request_id)

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        return self._chat.models(context_lengths)

    def count(self, incoming: Incoming) -> Json:
        """Return the answer to a request for a token count."""
        items = resolved(incoming.body, self._memory)
        size = prompt_tokens(pieces(incoming.body, items, self._sealing), incoming.count)
        return {"object": "response.input_tokens", "input_tokens": size}

    def reply(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the whole answer, usage included; the prompt counts as sent and, with `store`, is remembered."""
        body = incoming.body
        output = self._output(answer, incoming)
        is_cut = isinstance(answer.then if isinstance(answer, Think) else answer, CutOff)
        reply: Json = {
            "id": self._ids.new("resp"),
            "object": "response",
            "created_at": CREATED,
            "status": "incomplete" if is_cut else "completed",
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            **{name: body.get(name, otherwise) for name, otherwise in _ECHOED.items()},
            "model": body["model"],
            "output": output,
            "service_tier": "default",
            "usage": self._usage(output, answer, incoming),
        }
        if body.get("store", True):
            self._memory.keep(reply["id"], [*resolved(body, self._memory), *output])
        return reply

    def compacted(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the answer to a request for a compaction: what the user said, and one item for everything else."""
        users = [
            {
                "id": self._ids.new("msg"),
                "type": "message",
                "status": "completed",
                "role": item["role"],
                "content": content_of(item),
            }
            for item in items_of(incoming.body)
            if kind_of(item) == "message" and item["role"] != "assistant"
        ]
        said = answer.text if isinstance(answer, Say) else ""
        item = {
            "id": self._ids.new("cmp"),
            "type": "compaction",
            "encrypted_content": self._sealing.sealed(said),
        }
        return {
            "id": self._ids.new("resp"),
            "object": "response.compaction",
            "created_at": CREATED,
            "output": [*users, item],
            "usage": self._usage([item], answer, incoming),
        }

    def events(self, reply: Json, incoming: Incoming) -> Iterator[bytes]:  # noqa: ARG002 - the protocol has it
        """Yield the same answer as server-sent events."""
        return stream(reply)

    def refusing(self, refusal: Refusal, incoming: Incoming) -> Iterator[bytes] | None:
        """Return the events that refuse a prompt only after its stream has begun, which it does for one too long."""
        if not incoming.body.get("stream") or refusal.violation.code != "context_length_exceeded":
            return None
        begun = {"id": self._ids.new("resp"), "object": "response", "created_at": CREATED}
        return refused({**_ECHOED, **begun, "model": incoming.body["model"]}, refusal.violation)

    def _output(self, answer: Spoken, incoming: Incoming) -> list[Json]:
        if isinstance(answer, Think):
            thought = self._reasoning(answer, incoming)
            return [thought, *self._said(answer.then, incoming, thought["id"])]
        return self._said(answer, incoming, "")

    def _reasoning(self, answer: Think, incoming: Incoming) -> Json:
        said = [] if answer.redacted else [{"type": "summary_text", "text": answer.text}]
        item: Json = {"id": self._ids.new("rs"), "type": "reasoning", "summary": said}
        included = incoming.body.get("include")
        if isinstance(included, list) and ENCRYPTED in included:
            item["encrypted_content"] = self._sealing.sealed(answer.text)
        return item

    def _said(
        self, answer: Say | CutOff | CallTools | Refuse | DropConnection, incoming: Incoming, reasoning: str
    ) -> list[Json]:
        match answer:
            case CallTools():
                said = [self._message(answer.text, reasoning)] if answer.text else []
                free = {tool["name"] for tool in tools_in(incoming.body) if tool["type"] == "custom"}
                calls = [
                    self._call(call.name, dict(call.arguments), call.id, reasoning, is_free=call.name in free)
                    for call in answer.calls
                ]
                return said + calls
            case Refuse():
                message = self._message("", reasoning)
                return [{**message, "content": [{"type": "refusal", "refusal": answer.text}]}]
            case CutOff():
                return [{**self._message(answer.text, reasoning), "status": "incomplete"}]
            case Say() | DropConnection():
                return [self._message(answer.text, reasoning)]

    def _message(self, text: str, reasoning: str) -> Json:
        content = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {
            "id": led_by(self._ids.new("msg"), reasoning),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [content],
        }

    def _call(self, name: str, arguments: Json, call_id: str, reasoning: str, *, is_free: bool) -> Json:
        kind, given = ("custom_tool_call", "input") if is_free else ("function_call", "arguments")
        written = str(arguments.get("input", "")) if is_free else write(arguments)
        return {
            "id": led_by(self._ids.new("ctc" if is_free else "fc"), reasoning),
            "type": kind,
            "status": "completed",
            given: written,
            "call_id": call_id or self._ids.new("call"),
            "name": name,
        }

    def _usage(self, output: list[Json], answer: Spoken, incoming: Incoming) -> Json:
        body, model = incoming.body, str(incoming.body["model"])
        items = resolved(body, self._memory)
        options = body.get("prompt_cache_options") or {}
        answered = [
            piece
            for at, item in enumerate(output)
            for piece in item_pieces(item, len(items) + at, self._sealing)
        ]
        prompt = Prompt(
            pieces(body, items, self._sealing),
            incoming.count,
            answer=answered,
            long=options.get("ttl") == "12h" or body.get("prompt_cache_retention") == "24h",
            implicit=options.get("mode") != "explicit",
            conversation=str(body.get("prompt_cache_key") or ""),
        )
        caching = self._machines.caching(model, otherwise="openai-5.5")
        used = self._machines.use(prompt, model, caching)
        reasoning = incoming.count(answer.text) if isinstance(answer, Think) else 0
        said = prompt_tokens(
            [piece for piece in answered if piece.role not in ("reasoning", "compaction")], incoming.count
        )
        return _told(used, output=reasoning + said, reasoning=reasoning)


def _told(used: Used, *, output: int, reasoning: int) -> Json:
    written = used.written + used.written_long
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": used.read, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": used.prompt + output,
    }
