"""Conversations and sessions for the tests that are named after the sections of docs/specification.md."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lowwater import Lowwater, Session
from lowwater.core.events import Compaction
from lowwater.core.messages import texts_of
from lowwater.core.summary.critical import critical_references
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.view import Summary, is_pin_block
from lowwater.session.internals import internals
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink
from lowwater.testing.views import Script

Messages = list[dict[str, Any]]
ASK = "Find out why target 7 is slow and fix it, but do not touch the tests."


@pytest.fixture
def told() -> Callable[[Script], Messages]:
    """What a client holds of a conversation, as Python objects in the format it is written in."""

    def objects(script: Script) -> Messages:
        return [msgspec.json.decode(message.wire.raw) for message in script.messages() if message.wire]

    return objects


@pytest.fixture
def loop() -> Callable[..., Script]:
    """A system prompt, one ask, and calls of a tool whose results have so many different lines each."""

    def build(
        steps: int, lines: int = 40, *, tool: str = "terminal", script: Script | None = None, start: int = 0
    ) -> Script:
        script = script or Script().system("You are a coding agent.").user(ASK)
        for step in range(start, start + steps):
            rows = (f"run {step * 997 + row} of target {step} took {row * step} ms" for row in range(lines))
            script.calls(tool, {"command": f"make -C src/part_{step} all"}, "\n".join(rows))
        return script

    return build


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def opened(told: Callable[[Script], Messages], sink: RecordingSink) -> Callable[..., Session]:
    """A session that has taken a conversation in and tells `sink`; `window` is what its provider says it has."""

    def open_session(
        script: Script | None = None, *, policy: str, window: int | None = None, **options: Any
    ) -> Session:
        quiet = Settings(output=OutputSettings(quiet=True))
        given = {"model": "gpt-4o", "settings": quiet, "sinks": [sink], **options}
        session = Lowwater(policy=policy, **given).session("spec")
        if window is not None:
            session.learn_context_length(window)
        if script is not None:
            session.append(told(script))
        return session

    return open_session


def _answered(prompt: int) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"prompt_tokens": prompt, "completion_tokens": 1}}


@pytest.fixture
def reported() -> Callable[[Session, int], None]:
    """Have the provider report its first prompt, after which the next one is exactly so many tokens."""

    def report(session: Session, tokens: int) -> None:
        probe = Lowwater(model="gpt-4o", policy="never").session()
        probe.append([{"role": "user", "content": "go"}, _answered(1)["choices"][0]["message"]])
        answer = next(reversed(list(internals(probe).ledger.view.items))).tokens
        session.append({"role": "user", "content": "go"})
        session.record(_answered(tokens - answer))
        assert session.status().prompt == tokens

    return report


@pytest.fixture
def faithful() -> Callable[[SummaryRequest], Written]:
    """An act of a scripted summarizer: a summary that names everything critical, and what came before it."""

    def act(request: SummaryRequest) -> Written:
        asked = texts_of(request.newest_user) if request.newest_user else ()
        lines = [*asked, *(reference.text for reference in critical_references(request))]
        listed = "\n".join(f"- {line}" for line in dict.fromkeys(lines))
        opening = (
            request.previous or "## Goal\n- Whatever the user asked for is what this is about, as follows."
        )
        return Written(text=f"{opening}\n\n## Critical Context\n{listed}", by="faithful")

    return act


@pytest.fixture
def compacted() -> Callable[[Session], Compaction]:
    """The newest compaction of a session, which has had one."""

    def newest(session: Session) -> Compaction:
        event = session.status().last_compaction
        assert event is not None, session.explain()
        return event

    return newest


@pytest.fixture
def summaries() -> Callable[[Session], list[Summary]]:
    """The summaries that stand in a session's view, in order."""
    return lambda session: [
        item
        for item in internals(session).ledger.view.items
        if isinstance(item, Summary) and not is_pin_block(item)
    ]
