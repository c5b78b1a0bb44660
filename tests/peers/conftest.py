"""Long conversations in chat form, and playing one through the library turn by turn."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from lowwater import Lowwater, Session
from lowwater.core.events import Compaction
from lowwater.session.internals import internals
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.provider.openai import rules
from lowwater.testing.provider.prompt import ReceivedRequest, Refusal, first_refusal
from tests.generated import generate_session

Message = dict[str, Any]
Messages = list[Message]
QUIET = Settings(output=OutputSettings(quiet=True))
WINDOW = 40_000
"""A small one keeps the tests short: wall 30,000, threshold 28,500, tail 5,700."""


@cache
def _generated(seed: int, tokens: int) -> bytes:
    generated = generate_session("coding", seed=seed, target_tokens=tokens)
    return b"[%s]" % b",".join(generated.as_openai_chat())


@pytest.fixture
def coding() -> Callable[..., Messages]:
    """A generated coding session of about `tokens`, system prompt first, the same for the same arguments."""

    def generate(tokens: int, seed: int = 1) -> Messages:
        messages: Messages = msgspec.json.decode(_generated(seed, tokens))
        return messages

    return generate


def _step(at: int, name: str, arguments: Message, result: str) -> Messages:
    call = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}
    calling = {"id": f"call_{at}", "type": "function", "function": call}
    return [
        {"role": "assistant", "content": f"Step {at}.", "tool_calls": [calling]},
        {"role": "tool", "tool_call_id": f"call_{at}", "content": result},
    ]


@pytest.fixture
def step() -> Callable[..., Messages]:
    """One call of a tool and its result, as two messages; `at` makes the id."""
    return _step


@pytest.fixture
def tool_loop() -> Callable[..., Messages]:
    """A system prompt, one request, and `steps` calls whose results have about `lines` different lines each."""

    def build(
        steps: int, lines: int = 40, ask: str = "Find the flaky test in packages/auth and fix it."
    ) -> Messages:
        opening = [{"role": "system", "content": "You are a coding agent."}, {"role": "user", "content": ask}]
        outputs = (
            "\n".join(f"{at}: line {line} of run {at * 7919 + line}" for line in range(lines))
            for at in range(steps)
        )
        loop = [
            _step(at, "terminal", {"command": f"make check-{at}"}, text) for at, text in enumerate(outputs)
        ]
        return [*opening, *(message for pair in loop for message in pair)]

    return build


@pytest.fixture
def opened() -> Callable[..., Session]:
    """A session of gpt-4o under runway, with a small window, that has taken messages in; options are those of Lowwater."""

    def open_session(
        messages: Messages, summarizer: Any = (), *, window: int | None = WINDOW, **options: Any
    ) -> Session:
        options = {"model": "gpt-4o", "policy": "runway", "settings": QUIET, **options}
        session = Lowwater(summarizer=summarizer, **options).session("work")
        if window is not None:
            session.learn_context_length(window)
        session.append(messages)
        return session

    return open_session


class Sent(Struct, frozen=True, kw_only=True):
    """One request of a played session."""

    messages: Messages
    tokens: int
    compaction: Compaction | None
    """What was done to the view right before."""
    code: str
    """Why the decision was taken."""


class Played(Struct, frozen=True, kw_only=True):
    """A whole session: every request in order."""

    session: Session
    sent: list[Sent]

    @property
    def compactions(self) -> list[Compaction]:
        return [sent.compaction for sent in self.sent if sent.compaction is not None]

    @property
    def breaks(self) -> list[int]:
        """The requests that do not begin with the whole of the one before them."""
        pairs = enumerate(zip(self.sent, self.sent[1:], strict=False), start=1)
        return [at for at, (old, new) in pairs if new.messages[: len(old.messages)] != old.messages]


@pytest.fixture
def play() -> Callable[..., Played]:
    """Append a recorded conversation message by message and prepare a request where the model answered.

    `window` is what the provider says its model has; `scale` what it reports for a counted token, of which `cached` are
    reported as read from its cache.
    """

    def run(
        messages: Messages,
        *,
        window: int | None = None,
        scale: float | None = None,
        cached: float = 0.9,
        **options: Any,
    ) -> Played:
        sink = RecordingSink()
        keeper = Lowwater(
            **{"model": "gpt-4o", "policy": "runway", "settings": QUIET, "sinks": [sink], **options}
        )
        session = keeper.session("played")
        if window is not None:
            session.learn_context_length(window)
        sent: list[Sent] = []
        for message in messages:
            if message["role"] != "assistant":
                session.append(message)
                continue
            known = len(sink.compactions)
            request = session.prepare()
            decision = request.decision
            assert decision is not None
            new = sink.compactions[known:]
            wire = request.as_openai()["messages"]
            code = decision.because.code
            sent.append(
                Sent(messages=wire, tokens=request.tokens, compaction=new[-1] if new else None, code=code)
            )
            session.record(_answer(message, request.messages, session, scale, cached))
        return Played(session=session, sent=sent)

    return run


def _answer(message: Message, _sent: object, session: Session, scale: float | None, cached: float) -> Message:
    """Return the recorded answer as the provider gave it, with the usage it would have reported."""
    answer: Message = {"choices": [{"message": message, "finish_reason": "stop"}]}
    if scale is not None:
        prompt = round(scale * internals(session).ledger.view.total_tokens)
        details = {"cached_tokens": round(cached * prompt)}
        answer["usage"] = {"prompt_tokens": prompt, "completion_tokens": 50, "prompt_tokens_details": details}
    return answer


@pytest.fixture
def refusal() -> Callable[[Messages], Refusal | None]:
    """What a provider of the chat format would say about these messages; None if it takes them."""

    def check(messages: Messages) -> Refusal | None:
        body = {"model": "gpt-4o", "messages": messages}
        incoming = ReceivedRequest(
            headers={"authorization": "Bearer none"},
            size=0,
            body=body,
            context_length=1 << 40,
            count=lambda text: len(text) // 4,
        )
        return first_refusal(rules(), incoming)

    return check


def _texts(messages: Messages) -> Iterator[str]:
    for message in messages:
        content = message.get("content") or ""
        yield content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


@pytest.fixture
def shown() -> Callable[[Messages], str]:
    """Everything that messages say, as one text."""
    return lambda messages: "\n".join(_texts(messages))


@pytest.fixture
def summaries() -> Callable[[Messages], list[str]]:
    """The messages that stand for others, frame included."""
    return lambda messages: [
        text for text in _texts(messages) if "----- summary of earlier turns -----" in text
    ]
