"""A provider that plays a recording: it answers what was recorded, and bills what it is sent by the cost engine."""

from collections.abc import Sequence
from functools import partial

import msgspec
from msgspec import Struct

from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, after_call, expected_usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.entries import Appended
from lowwater.core.formats.codec import as_completion, decode_messages, split_array
from lowwater.core.ledger import Ledger
from lowwater.core.legality import refuse_illegal
from lowwater.core.messages import Message
from lowwater.core.models.model import Model
from lowwater.core.strict_json import read_fields
from lowwater.core.tokens.counting import count_message
from lowwater.core.turns.state import key_behind, lay_out_prompt
from lowwater.errors import LowwaterError
from lowwater.gateway.relay import Receive, Scope, Send
from lowwater.protocols import Clock
from lowwater.session.factories import calibration_for, counter_for, framing_for

HINT = "x-recording"
"""The header by which a request says which recording it belongs to; the gateway makes nothing of it."""


class Playing(Struct, kw_only=True):
    """One recording as the provider sees it."""

    answers: Sequence[bytes]
    outputs: Sequence[int]
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
        answer = self._answered(self.playing[name], body)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def _answered(self, playing: Playing, body: bytes) -> bytes:
        messages = decode_messages(split_array(read_fields(body)["messages"]), "openai_chat")
        try:
            refuse_illegal(messages)
        except LowwaterError as error:
            playing.refused = playing.refused or str(error)
        answer, output = playing.answers[playing.turn], playing.outputs[playing.turn]
        usage = self._billed(playing, messages, decode_messages([answer], "openai_chat")[0], output)
        playing.turn += 1
        cost = cost_of(usage, self._model)
        assert cost is not None, f"no price is known for {self._model.name}"
        playing.cost += cost
        return msgspec.json.encode(as_completion(msgspec.Raw(answer), usage, self._model.name))

    def _billed(self, playing: Playing, messages: Sequence[Message], answer: Message, output: int) -> Usage:
        seen = tuple(part for message in messages for part in _parted(message))
        sizes = tuple(size for message in messages for size in self._sizes_of(message))
        view = Ledger().append(Appended(at=0.0, messages=seen, tokens=sizes)).view
        prompt = calibration_for(self._model.name).next_prompt(sum(sizes))
        laid = lay_out_prompt(view, start=b"", prompt=prompt, scale=self._scale, marks={})
        at = self._clock.now()
        expected = expected_usage(playing.belief, laid.layout, self._model, at)
        usage = msgspec.structs.replace(expected, output=output)
        playing.belief = after_call(
            playing.belief,
            laid.layout,
            self._model,
            at,
            reported=usage,
            output_key=key_behind(laid.layout, answer),
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


def _parted(message: Message) -> Sequence[Message]:
    """Return a user message part by part.

    A cache compares tokens, not messages: where a compaction appends a summary to a user message, what was there before
    it is still cached. Answers are never appended to.
    """
    if message.role != "user" or len(message.parts) < 2:
        return (message,)
    return [message.with_parts((part,)) for part in message.parts]
