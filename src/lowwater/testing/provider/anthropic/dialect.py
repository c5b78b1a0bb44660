"""The Messages API as a whole: refuses by its rules, signs thinking, bills by the cache."""

from collections.abc import Iterator, Mapping

from lowwater.testing.provider.answers import CallTools, CutOff, DropConnection, Refuse, Say, Spoken, Think
from lowwater.testing.provider.anthropic.body import message_pieces, pieces
from lowwater.testing.provider.anthropic.compaction import is_asked_for
from lowwater.testing.provider.anthropic.rules import rules
from lowwater.testing.provider.anthropic.signatures import Signer
from lowwater.testing.provider.anthropic.stream import stream
from lowwater.testing.provider.anthropic.thinking import dropped_thinking
from lowwater.testing.provider.caches import Machines
from lowwater.testing.provider.dialect import Ids
from lowwater.testing.provider.prompt import Prompt, prompt_tokens, tokens
from lowwater.testing.provider.rule import Incoming, Json, Violation

MESSAGES_DEPEND_ON = ("tool_choice", "thinking")
"""Settings that, changed, leave tools and system prompt cached but not the messages."""


class MessagesDialect:
    """Speaks the Messages API."""

    request_id_header = "request-id"

    def __init__(self, *, ids: Ids, key: bytes, machines: Machines | None = None) -> None:
        self._ids = ids
        self._signer = Signer(key)
        self._machines = machines or Machines()
        self.rules = rules(self._signer)

    def error(self, violation: Violation, request_id: str) -> Json:
        """Return the body of an error."""
        said: Json = {"type": violation.type, "message": violation.message}
        if violation.code is not None:
            said["details"] = {"error_code": violation.code}
        return {"type": "error", "error": said, "request_id": request_id}

    def models(self, context_lengths: Mapping[str, int]) -> Json:
        """Return the list of models."""
        listed = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "1970-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": length,
            }
            for name, length in context_lengths.items()
        ]
        names: list[str | None] = [*context_lengths] or [None]
        return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def count(self, incoming: Incoming) -> Json:
        """Return the answer to a request for a token count."""
        return {"input_tokens": prompt_tokens(pieces(incoming.body), incoming.count)}

    def reply(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the whole answer, usage included; the prompt counts as sent from here on."""
        if is_asked_for(incoming.body):
            return self._compacted(answer, incoming)
        content = self._content(answer, incoming)
        reply: Json = {
            "id": self._ids.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": incoming.body["model"],
            "content": content,
            "stop_reason": _stop_reason(answer),
            "stop_sequence": None,
            "usage": self._usage(content, incoming),
        }
        if isinstance(answer, Refuse):
            reply["stop_details"] = {"type": "refusal", "category": None, "explanation": answer.text}
        dropped = dropped_thinking(incoming, self._signer)
        if dropped:
            reply["input_transformations"] = [
                {"type": "thinking_dropped", "path": block.path, "reason": block.reason} for block in dropped
            ]
        return reply

    def _compacted(self, answer: Spoken, incoming: Incoming) -> Json:
        """Return the answer to a request for a compaction: one signed block of what the script says, billed apart.

        An answer that is more or less than text ends without a block, and its stop reason says why.
        """
        said = self._content(answer, incoming)
        text = "".join(block["text"] for block in said if block["type"] == "text")
        stop = _stop_reason(answer)
        content: list[Json] = []
        if stop == "end_turn" and text:
            signature = self._signer.sign_block(incoming.model, text, pieces(incoming.body))
            content, stop = [{"type": "compaction", "content": text, "signature": signature}], "compaction"
        spent = self._usage(said, incoming)
        own = {name: spent[name] for name in spent if name != "service_tier"}
        own["input_tokens"] += incoming.count(incoming.body["compaction"].get("instructions") or "")
        nothing = {"input_tokens": 0, "output_tokens": 0, "service_tier": "standard"}
        return {
            "id": self._ids.new("msg"),
            "type": "message",
            "role": "assistant",
            "model": incoming.body["model"],
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {**nothing, "iterations": [{"type": "compaction", **own}]},
        }

    def events(self, reply: Json, incoming: Incoming) -> Iterator[bytes]:  # noqa: ARG002 - the protocol has it
        """Yield the same answer as server-sent events."""
        return stream(reply)

    def _content(self, answer: Spoken, incoming: Incoming) -> list[Json]:
        match answer:
            case Say() | CutOff() | Refuse() | DropConnection():
                return [{"type": "text", "text": answer.text}] if answer.text else []
            case CallTools():
                said = [{"type": "text", "text": answer.text}] if answer.text else []
                return said + [
                    {
                        "type": "tool_use",
                        "id": call.id or self._ids.new("toolu"),
                        "name": call.name,
                        "input": dict(call.arguments),
                    }
                    for call in answer.calls
                ]
            case Think():
                return [self._thinking(answer, incoming), *self._content(answer.then, incoming)]

    def _thinking(self, answer: Think, incoming: Incoming) -> Json:
        text = "" if answer.redacted else answer.text
        signature = self._signer.sign(incoming.model, text, pieces(incoming.body))
        if answer.redacted:
            return {"type": "redacted_thinking", "data": signature}
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _usage(self, content: list[Json], incoming: Incoming) -> Json:
        body, model = incoming.body, str(incoming.body["model"])
        prompt = Prompt(
            pieces(body),
            incoming.count,
            answer=message_pieces({"role": "assistant", "content": content}, len(body["messages"])),
            settings=[body.get(name) for name in MESSAGES_DEPEND_ON],
        )
        caching = self._machines.caching(model, otherwise="anthropic")
        used = self._machines.use(prompt, model, caching)
        return {
            "input_tokens": used.uncached,
            "cache_read_input_tokens": used.read,
            "cache_creation_input_tokens": used.written + used.written_long,
            "cache_creation": {
                "ephemeral_5m_input_tokens": used.written,
                "ephemeral_1h_input_tokens": used.written_long,
            },
            "output_tokens": max(1, sum(tokens(block, incoming.count) for block in content)),
            "service_tier": "standard",
        }


def _stop_reason(answer: Spoken) -> str:
    match answer:
        case Think():
            return _stop_reason(answer.then)
        case CallTools():
            return "tool_use"
        case CutOff():
            return "max_tokens"
        case Refuse():
            return "refusal"
        case Say() | DropConnection():
            return "end_turn"
