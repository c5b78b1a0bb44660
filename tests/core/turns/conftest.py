"""Playing conversations through the library under every policy, watched."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

from lowwater.core.messages import Format
from lowwater.core.policies.registry import policy_named
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from lowwater.testing.invariants import AT_THE_WALL, Protected, Watch
from lowwater.testing.legality import refusal_of
from lowwater.testing.provider.answers import Spoken
from lowwater.testing.provider.anthropic import MessagesDialect
from lowwater.testing.provider.prompt import Ids, ReceivedRequest, first_refusal, quarter


class Conversation(NamedTuple):
    """Messages as a client holds them, and what its requests carry beside them."""

    messages: Sequence[Any]
    format: Format
    system: Any = None
    tools: Any = None


class Played(Struct, frozen=True, kw_only=True):
    """A conversation that was played to its end."""

    session: Session
    sink: RecordingSink
    requests: list[PreparedRequest]
    compactions: int


class Play:
    """Plays a conversation as a client would, turn by turn, and watches the invariants."""

    def __init__(
        self,
        policy: str,
        *,
        context: int | None,
        model: str = "model-nobody-knows",
        first: int = 3,
        last: int = 20,
        **options: Any,
    ) -> None:
        compression = CompressionSettings(protect_first_n=first, protect_last_n=last)
        self.settings = Settings(compression=compression)
        self.sink = RecordingSink()
        self.model = model
        self.lowwater = Lowwater(
            model=model,
            policy=policy,
            settings=self.settings,
            sinks=[self.sink],
            clock=ScriptedClock(1_000.0),
            **options,
        )
        self.session = self.lowwater.session("played")
        if context is not None:
            self.session.learn_context_length(context)
        preset = policy_named(policy).preset
        self.watch = Watch(
            Protected(
                first=first,
                last=last,
                never_prune=preset.never_prune,
                notes_in_system=preset.note_in_system,
                binds_thinking="5-5" in model,
            )
        )

    def play(self, conversation: Conversation, *, check_all: bool = True) -> Played:
        """Send every turn; each request is checked by the provider's rules, or only those after a compaction."""
        requests = []
        compacted = 0
        for exchange in exchanges(conversation.messages):
            self.session.append(exchange.new)
            request = self.session.prepare(system=conversation.system, tools=conversation.tools)
            self.watch.see(internals(self.session).ledger, request.messages)
            if check_all or self.watch.compactions > compacted:
                refused = refusal(request, conversation.format)
                assert refused is None, refused
                compacted = self.watch.compactions
            requests.append(request)
            if request.tokens >= self.session.status().wall:
                assert self.sink.events[-1][1] in self.sink.skips, "what does not fit cannot be made smaller"
            if exchange.answer is not None:
                self.session.append(exchange.answer)
        for event in self.sink.compactions:
            if AT_THE_WALL & set(event.mechanisms) and event.mode != "shorten":
                assert event.because.code in {"wall", "wall-into-tail", "ceiling-into-tail"}
        return Played(
            session=self.session, sink=self.sink, requests=requests, compactions=self.watch.compactions
        )


def refusal(request: PreparedRequest, format: Format) -> object:
    """Return why a provider of this format would refuse the request."""
    if format == "anthropic":
        return refusal_of(
            {"model": "claude-sonnet-4-5", "max_tokens": 100, **request.as_anthropic()}, "anthropic"
        )
    return refusal_of({"model": "gpt-5.5", **request.as_openai()}, "openai_chat")


@pytest.fixture(scope="session")
def play() -> Callable[..., Play]:
    return Play


@pytest.fixture(scope="session")
def conversation() -> Callable[..., Conversation]:
    return Conversation


class Claude:
    """The Messages API in this process: the same rules, signatures and usage, without the wire."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._dialect = MessagesDialect(ids=Ids(), key=b"lowwater")

    def refuses(self, request: PreparedRequest, **fields: Any) -> str:
        """Return the name of the rule a request breaks, or nothing."""
        refusal = first_refusal(self._dialect.rules, self._incoming(request, fields))
        return refusal.rule if refusal else ""

    def answer(self, request: PreparedRequest, answer: Spoken, **fields: Any) -> dict[str, Any]:
        """Return the response to a request, which must be legal."""
        assert self.refuses(request, **fields) == ""
        return self._dialect.reply(answer, self._incoming(request, fields))

    def _incoming(self, request: PreparedRequest, fields: dict[str, Any]) -> ReceivedRequest:
        body = {"model": self.model, "max_tokens": 4_000, **request.as_anthropic(), **fields}
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        return ReceivedRequest(headers=headers, size=0, body=body, context_length=1_000_000, count=quarter)


@pytest.fixture
def claude() -> Claude:
    return Claude("claude-opus-5-5")
