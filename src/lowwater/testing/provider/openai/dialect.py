"""The Chat Completions API as a whole: refuses by its rules, answers, bills as the provider of the model does."""

from collections.abc import Iterator, Mapping

from lowwater.testing.provider.answers import CallTools, CutOff, DropConnection, Refuse, Say, Spoken, Think
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.dialect import Ids, write
from lowwater.testing.provider.openai.rules import rules
from lowwater.testing.provider.openai.stream import stream
from lowwater.testing.provider.openai.usage import prompt_of, prompt_usage
from lowwater.testing.provider.rule import Incoming, Json, Violation

CREATED = 1_794_700_800
"""When every answer was created: a fixed instant, so that the same script gives the same bytes."""


class ChatDialect:
    """Speaks the Chat Completions API."""

    request_id_header = "x-request-id"

    def __init__(self, *, ids: Ids, machines: Machines | None = None) -> None:
        self._ids = ids
        self._machines = machines or Machines()
        self.rules = rules()

    def error(self, violation: Violation, request_id: str) -> Json:  # noqa: ARG002 - the id is in a header here
        """Return the body of an error."""
        return {
            "error": {
                "message": violation.message,
                "type": violation.type,
                "param": violation.param,
                "code": violation.code,
            }
        }

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        listed = [
            {"id": name, "object": "model", "created": CREATED, "owned_by": "lowwater"}
            for name in context_lengths
        ]
        return {"object": "list", "data": listed}

    def reply(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the whole answer, usage included; the prompt counts as sent from here on."""
        thought = answer.text if isinstance(answer, Think) else ""
        message = self._message(answer.then if isinstance(answer, Think) else answer)
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer), "logprobs": None}
        return {
            "id": self._ids.new("chatcmpl"),
            "object": "chat.completion",
            "created": CREATED,
            "model": incoming.body["model"],
            "choices": [choice],
            "usage": self._usage(message, thought, incoming),
        }

    def events(self, reply: Json, incoming: Incoming) -> Iterator[bytes]:
        """Yield the same answer as server-sent events, with the usage if the request asks for it."""
        options = incoming.body.get("stream_options") or {}
        return stream(reply, include_usage=bool(options.get("include_usage")))

    def _message(self, answer: Say | CutOff | CallTools | Refuse | DropConnection) -> Json:
        match answer:
            case Say() | CutOff() | DropConnection():
                return {"role": "assistant", "content": answer.text, "refusal": None}
            case Refuse():
                return {"role": "assistant", "content": None, "refusal": answer.text}
            case CallTools():
                calls = [
                    {
                        "id": call.id or self._ids.new("call"),
                        "type": "function",
                        "function": {"name": call.name, "arguments": write(dict(call.arguments))},
                    }
                    for call in answer.calls
                ]
                return {
                    "role": "assistant",
                    "content": answer.text or None,
                    "refusal": None,
                    "tool_calls": calls,
                }

    def _usage(self, message: Json, thought: str, incoming: Incoming) -> Json:
        model = str(incoming.body["model"])
        caching = self._machines.caching(model, otherwise="openai-5.5")
        used = self._machines.use(prompt_of(incoming, message, thought), model, caching)
        texts = [message["content"] or "", message["refusal"] or ""]
        texts += [write(call["function"]) for call in message.get("tool_calls", [])]
        reasoning = incoming.count(thought) if thought else 0
        output = reasoning + sum(incoming.count(text) for text in texts if text)
        return {
            "prompt_tokens": used.prompt,
            "completion_tokens": output,
            "total_tokens": used.prompt + output,
            "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
            **prompt_usage(used, caching.reports),
        }


def _finish_reason(answer: Spoken) -> str:
    match answer:
        case Think():
            return _finish_reason(answer.then)
        case CallTools():
            return "tool_calls"
        case CutOff():
            return "length"
        case Say() | Refuse() | DropConnection():
            return "stop"
