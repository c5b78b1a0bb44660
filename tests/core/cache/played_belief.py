"""Sessions sent over HTTP to the rules-checking provider, with what the cache belief said before each call."""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import (
    Belief,
    Block,
    Layout,
    MarkLifetime,
    after_call,
    billed,
    chained,
    warmth,
)
from lowwater.core.formats.usage import decode_anthropic_usage as decode_messages_usage
from lowwater.core.formats.usage import decode_openai_usage as decode_chat_usage
from lowwater.core.models.model import Model
from lowwater.session.library import Lowwater
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from lowwater.testing.provider import Call, CallTools, Provider, Say, Seen
from lowwater.testing.provider import anthropic as messages_body
from lowwater.testing.provider import openai as chat_body
from lowwater.testing.provider.answers import Answer
from lowwater.testing.provider.prompt import PromptPiece, quarter, tokens
from tests.generated import GeneratedSession

REGISTRY = load_registry()
WINDOW = 20_000
MARKS: dict[str, MarkLifetime] = {"": "", "5m": "short", "breakpoint": "short", "1h": "long"}
HEADERS = {
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
    "authorization": "Bearer k",
    "content-type": "application/json",
}

Change = Callable[[Any], None]
"""Changes a request's body before it is sent."""
Happening = Callable[[Provider, int], None]
"""Does something to the provider before the call of that number."""
Rules = Callable[[Model], Model]
"""Tells the belief something else of the model than is known of it."""


class Sent(NamedTuple):
    """One call: what the belief said of it, what it was billed."""

    expected: Usage
    billed: Usage
    compacted: bool
    writes_cost_more: bool

    @property
    def is_off(self) -> bool:
        """Whether that is more than one percent of the prompt."""
        return self.off > 0.01 * self.billed.prompt

    @property
    def off(self) -> int:
        """The tokens by which reads and writes were misjudged; writes at the price of input are input."""
        off = abs(self.billed.cache_read - self.expected.cache_read)
        if self.writes_cost_more:
            off += abs(self.billed.cache_write - self.expected.cache_write)
            off += abs(self.billed.cache_write_long - self.expected.cache_write_long)
        return off


def layout_of(pieces: list[PromptPiece], automatic: MarkLifetime = "short") -> Layout:
    """The blocks of a request as it was sent."""
    keys = chained(blake2b(piece.content).digest() for piece in pieces)
    return Layout(
        blocks=tuple(
            Block(
                key=key,
                tokens=tokens(piece.value, quarter),
                mark=MARKS[piece.mark],
                ends=_ends(piece, after.role if after else ""),
            )
            for key, piece, after in zip(keys, pieces, [*pieces[1:], None], strict=True)
        ),
        automatic=automatic,
    )


def key_behind(layout: Layout, said: list[PromptPiece]) -> bytes:
    """The key of the prefix that ends with an answer."""
    digests = (blake2b(piece.content).digest() for piece in said)
    return [layout.blocks[-1].key, *chained(digests, start=layout.blocks[-1].key)][-1]


def _ends(piece: PromptPiece, then: str) -> Any:
    if piece.section != "messages" or (piece.role == "assistant") == (then == "assistant"):
        return ""
    return "output" if piece.role == "assistant" else "input"


class Player:
    """Plays one session with one model; the belief sees only what was sent and what was reported."""

    def __init__(
        self,
        name: str,
        session: GeneratedSession,
        *,
        window: int,
        change: Change,
        automatic: MarkLifetime,
        rules: Rules,
    ) -> None:
        self.automatic = automatic
        self.model = rules(REGISTRY.find(name))
        self.name, self.session, self.change = name, session, change
        self.anthropic = name.startswith("claude")
        self.belief = Belief()
        self.clock = ScriptedClock()
        self.answer: Answer = Say("ok")
        self.sink = RecordingSink()
        self.library = Lowwater(
            model=name,
            policy="runway",
            settings=Settings(model=ModelSettings(cache_ttl="5m")),
            sinks=[self.sink],
            clock=self.clock,
        ).session()
        self.library.learn_context_length(window)

    def play(self, happening: Happening) -> list[Sent]:
        """Send every call of the session at the time it was recorded."""
        sent = []
        times = list(self._times())
        provider = Provider(self._next, now=self.clock.now, default_context=2_000_000)
        with provider, _connected(provider) as connection:
            for number, (new, answer) in enumerate(self._exchanges()):
                self.clock.advance(times[number] - self.clock.now())
                happening(provider, number)
                self.library.append(new)
                known = len(self.sink.compactions)
                body = self._body()
                if answer is None:
                    break
                self.answer = _spoken(answer)
                sent.append(self._call(connection, body, answer, known))
                self.library.append([answer])
        return sent

    def _next(self, seen: Seen) -> Answer:
        return Say("ok") if self.anthropic else self.answer

    def _times(self) -> Iterator[float]:
        newest = 0.0
        for message, time in zip(self.session.messages, self.session.times, strict=True):
            if message.role == "assistant":
                yield newest
            newest = time
        yield newest

    def _exchanges(self) -> Iterator[tuple[list[Any], Any]]:
        raws = self.session.as_anthropic().messages if self.anthropic else self.session.as_openai_chat()
        for exchange in exchanges(map(json.loads, raws)):
            answer = exchange.answer and _without_thinking(exchange.answer)
            yield [_without_thinking(message) for message in exchange.new], answer

    def _body(self) -> Any:
        if self.anthropic:
            system = json.loads(self.session.as_anthropic().system)
            tools = json.loads(self.session.tools_json("anthropic"))
            body = self.library.prepare(system=system, tools=tools).as_anthropic() | {"max_tokens": 9}
        else:
            body = self.library.prepare(tools=json.loads(self.session.tools_json("openai_chat"))).as_openai()
        body = json.loads(json.dumps({**body, "model": self.name}))
        self.change(body)
        return body

    def _call(self, connection: http.client.HTTPConnection, body: Any, answer: Any, known: int) -> Sent:
        at = self.clock.now()
        pieces = messages_body.pieces(body) if self.anthropic else chat_body.pieces(body)
        layout = layout_of(pieces, self.automatic)
        # Where no lifetime is published the belief is a chance; what it holds for most likely is compared.
        expected = billed(layout, self.model, warmth(self.belief, layout, self.model.cache, at).hit())
        connection.request(
            "POST", "/v1/messages" if self.anthropic else "/v1/chat/completions", json.dumps(body), HEADERS
        )
        told = json.loads(connection.getresponse().read())
        assert "usage" in told, told
        decode = decode_messages_usage if self.anthropic else decode_chat_usage
        usage = decode(json.dumps(told["usage"]).encode())
        reader = messages_body.message_pieces if self.anthropic else chat_body.message_pieces
        said = reader(answer, 0)
        self.belief = after_call(
            self.belief,
            layout,
            self.model,
            at,
            reported=usage,
            output_key=key_behind(layout, said),
            output_tokens=sum(tokens(p.value, quarter) for p in said),
        ).belief
        cut = any(event.mode != "shorten" for event in self.sink.compactions[known:])
        prices = self.model.prices
        return Sent(expected, usage, cut, prices is not None and prices.cache_write > prices.input)


def play(
    name: str,
    session: GeneratedSession,
    *,
    window: int = WINDOW,
    change: Change = lambda body: None,
    happening: Happening = lambda provider, number: None,
    automatic: MarkLifetime = "short",
    rules: Rules = lambda model: model,
) -> list[Sent]:
    """Return every call of a session played with a model."""
    player = Player(name, session, window=window, change=change, automatic=automatic, rules=rules)
    return player.play(happening)


@contextmanager
def _connected(provider: Provider) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(provider.anthropic_base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        yield connection
    finally:
        connection.close()


def _without_thinking(message: Any) -> Any:
    """What a generator signed no provider accepts."""
    if not isinstance(message["content"], list):
        return message
    return {**message, "content": [b for b in message["content"] if b.get("type") != "thinking"]}


def _spoken(answer: Any) -> Answer:
    if not isinstance(answer.get("tool_calls"), list):
        return Say(answer["content"] if isinstance(answer["content"], str) else "ok")
    calls = (
        Call(call["function"]["name"], json.loads(call["function"]["arguments"]), call["id"])
        for call in answer["tool_calls"]
    )
    return CallTools(tuple(calls), answer.get("content") or "")
