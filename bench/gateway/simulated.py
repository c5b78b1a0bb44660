"""A provider that plays a recording: it answers what was recorded, and bills what it is sent by the cost engine."""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, MarkLifetime, after_call, expected_usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.entries import Appended
from lowwater.core.formats.cache_marks import unmark_content
from lowwater.core.formats.codec import (
    as_completion,
    as_message,
    decode_messages,
    encode_messages,
    list_field,
    messages_in,
    split_array,
    system_field,
)
from lowwater.core.ledger import Ledger
from lowwater.core.legality import refuse_illegal
from lowwater.core.messages import Format, Message, Text
from lowwater.core.models.model import Model
from lowwater.core.strict_json import read_fields, write_array
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.tokens.counting import count_message, count_preamble
from lowwater.core.turns.state import PREAMBLE, key_behind, lay_out_prompt
from lowwater.errors import LowwaterError
from lowwater.gateway.relay import Receive, Scope, Send
from lowwater.lab.replay.script import sheet_of
from lowwater.protocols import Clock
from lowwater.session.factories import calibration_for, counter_for, framing_for

HINT = "x-recording"
"""The header by which a request says which recording it belongs to; the gateway makes nothing of it."""
FORMATS: Mapping[str, Format] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
}
"""The format that each path speaks."""
_MARK, _LONG_MARK = b'"cache_control"', b'"ttl":"1h"'


class Playing(Struct, kw_only=True):
    """One recording as the provider sees it."""

    answers: Sequence[bytes]
    """What the model says: a message, or in the Responses format an array of items."""
    outputs: Sequence[int]
    format: Format = "openai_chat"
    reported: Sequence[Usage | None] | None = None
    """The usage to report with each answer, None for no usage; if it is not given, each request is billed by the cache's rules."""
    sent: bytes = b""
    """The body that the client sends next."""
    changed: int = 0
    """Requests that arrived with other bytes than the client sent, if it says what it sends."""
    given: bytes = b""
    """The body of the last answer."""
    turn: int = 0
    cost: int = 0
    belief: Belief = Belief()
    refused: str = ""
    """The first thing that was wrong with a request."""
    texts: int = 0
    """Requests that held a text of another recording."""


class SimulatedProvider:
    """An ASGI application; the clock is the recordings'."""

    def __init__(self, model: Model, clock: Clock) -> None:
        self._model = model
        self._clock = clock
        self._scale = calibration_for(model.name).scale
        self._tokenizer, self._framing = counter_for(model.name), framing_for(model.name)
        self._sizes: dict[bytes, tuple[int, ...]] = {}
        self.playing: dict[str, Playing] = {}
        self.summaries = 0
        """Summaries that were asked for."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        name = dict(scope["headers"]).get(HINT.encode(), b"").decode()
        answer = self._answered(self.playing[name], body) if name else self._summary(scope["path"], body)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answered(self, playing: Playing, body: bytes) -> bytes:
        playing.changed += playing.sent not in {b"", body}
        answer, output = playing.answers[playing.turn], playing.outputs[playing.turn]
        if playing.reported is not None:
            usage = playing.reported[playing.turn]
        else:
            usage = self._billed(playing, read_fields(body), answer, output)
            playing.cost += self._cost(usage)
        playing.turn += 1
        playing.given = answer_with_usage(answer, usage, self._model.name, playing.format)
        return playing.given

    def _summary(self, path: str, body: bytes) -> bytes:
        """Answer a request of the gateway's own: a summary extracted from the conversation that it sends."""
        self.summaries += 1
        format = FORMATS[path]
        messages = decode_messages(split_array(read_fields(body)[list_field(format)]), format)
        room = sheet_of(self._model).summary
        text = extract(
            SummaryRequest(messages=tuple(messages[:-1] or messages), max_tokens=room), self._tokenizer
        )
        sizes = [sum(self._sizes_of(message)) for message in messages]
        usage = Usage(
            cache_read=round(self._scale * sum(sizes[:-1])),
            uncached=round(self._scale * sizes[-1]),
            output=round(self._scale * self._tokenizer.count(text)),
        )
        said = encode_messages([Message(role="assistant", parts=(Text(text=text),))], format)
        answer = write_array(said) if format == "openai_responses" else said[0]
        return answer_with_usage(answer, usage, self._model.name, format)

    def _cost(self, usage: Usage) -> int:
        cost = cost_of(usage, self._model)
        assert cost is not None, f"no price is known for {self._model.name}"
        return cost

    def _billed(self, playing: Playing, fields: Mapping[str, bytes], answer: bytes, output: int) -> Usage:
        format = playing.format
        raws = split_array(fields[list_field(format)])
        messages = decode_messages(raws, format)
        try:
            refuse_illegal(messages)
        except LowwaterError as error:
            playing.refused = playing.refused or str(error)
        system, tools = fields.get(system_field(format), b""), fields.get("tools", b"")
        seen = tuple(part for message in messages for part in _parted(message))
        sizes = tuple(size for message in messages for size in self._sizes_of(message))
        view = Ledger().append(Appended(at=0.0, messages=seen, tokens=sizes)).view
        preamble = count_preamble(system, tools, self._tokenizer)
        prompt = calibration_for(self._model.name).next_prompt(preamble + sum(sizes))
        start = unmark_content(system) + b"\0" + unmark_content(tools)
        marks = _marks_in(messages_in(raws, format), messages, system)
        laid = lay_out_prompt(view, start=start, prompt=prompt, scale=self._scale, marks=marks)
        at = self._clock.now()
        expected = expected_usage(playing.belief, laid.layout, self._model, at)
        usage = msgspec.structs.replace(expected, output=output)
        [said] = decode_messages(_items(answer, format), format)
        playing.belief = after_call(
            playing.belief,
            laid.layout,
            self._model,
            at,
            reported=usage,
            output_key=key_behind(laid.layout, said),
            output_tokens=output,
        ).belief
        return usage

    def _sizes_of(self, message: Message) -> tuple[int, ...]:
        """Return the tokens of each part that the cache sees; together they are those of the message."""
        known = self._sizes.get(message.digest)
        if known is None:
            count = partial(count_message, tokenizer=self._tokenizer, framing=self._framing)
            *before, _ = [count(part) for part in _parted(message)]
            known = self._sizes[message.digest] = (*before, max(0, count(message) - sum(before)))
        return known


def answer_with_usage(answer: bytes, usage: Usage | None, model: str, format: Format) -> bytes:
    """Return a complete answer in the form of its API; without usage the provider does not say what it billed."""
    used = usage or Usage()
    if format == "anthropic":
        said = as_message(msgspec.Raw(read_fields(answer)["content"]), used, model)
    elif format == "openai_chat":
        said = as_completion(msgspec.Raw(answer), used, model)
    else:
        written = used.cache_write + used.cache_write_long
        said = {
            "object": "response",
            "status": "completed",
            "model": model,
            "output": msgspec.Raw(answer),
            "usage": {
                "input_tokens": used.prompt,
                "output_tokens": used.output,
                "input_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": written},
            },
        }
    if usage is None:
        del said["usage"]
    return msgspec.json.encode(said)


def _items(answer: bytes, format: Format) -> list[bytes]:
    return split_array(answer) if format == "openai_responses" else [answer]


def _marks_in(raws: Sequence[bytes], messages: Sequence[Message], system: bytes) -> dict[int, MarkLifetime]:
    """Return the cache marks of a request by the index of the part that they are on; a message's mark is on its last part."""
    marks: dict[int, MarkLifetime] = {}
    if _MARK in system:
        marks[PREAMBLE] = "long" if _LONG_MARK in system else "short"
    last = -1
    for raw, message in zip(raws, messages, strict=True):
        last += len(_parted(message))
        if _MARK in raw:
            marks[last] = "long" if _LONG_MARK in raw else "short"
    return marks


def _parted(message: Message) -> Sequence[Message]:
    """Return a user message part by part.

    A cache compares tokens, not messages: where a compaction appends a summary to a user message, what was there before
    it is still cached. Answers are never appended to.
    """
    if message.role != "user" or len(message.parts) < 2:
        return (message,)
    return [message.with_parts((part,)) for part in message.parts]
