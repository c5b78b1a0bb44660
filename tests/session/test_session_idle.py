"""`session.idle()`: what a loop of one's own is told to do in a pause, and what becomes of the answer to a call that kept it warm."""

from typing import Any

import pytest

from lowwater import Lowwater, Session
from lowwater.errors import BadInput
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.fakes import ScriptedClock

MODEL = "claude-opus-4-5"
FIVE_MINUTES = Settings(model=ModelSettings(cache_ttl="5m"))


def answer(prompt: int, read: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": prompt - read,
        "output_tokens": 1,
    }
    content = [{"type": "text", "text": "Yes."}]
    return {"type": "message", "role": "assistant", "model": MODEL, "content": content, "usage": usage}


def conversation(clock: ScriptedClock, *, model: str = MODEL) -> Session:
    session = Lowwater(model=model, clock=clock, settings=FIVE_MINUTES).session("pauses")
    size = 0
    for said in ("one " * 20_000, "two", "three"):
        session.append({"role": "user", "content": said})
        prompt = session.prepare(system="You work.").tokens
        session.record(answer(prompt, size))
        size = prompt
        clock.advance(4)
    return session


def test_it_says_when_to_keep_warm_and_stops_by_itself() -> None:
    clock = ScriptedClock(1_800_000_000.0)
    session, calls = conversation(clock), 0
    prompt = session.status().prompt
    plan = session.idle()
    messages = len(session.history())
    while plan.action == "keep-warm":
        assert plan.at is not None
        assert plan.expires is not None
        assert clock.now() < plan.at < plan.expires <= clock.now() + 300
        clock.advance(plan.at - clock.now())
        plan, calls = session.idle(kept_warm=answer(prompt, prompt)), calls + 1
    assert 1 <= calls <= 8
    assert len(session.history()) == messages, "a call that keeps warm is no part of the conversation"


def test_the_next_request_is_expected_to_find_what_was_kept() -> None:
    clock = ScriptedClock(1_800_000_000.0)
    session = conversation(clock)
    plan = session.idle()
    assert plan.at is not None
    clock.advance(plan.at - clock.now())
    session.idle(kept_warm=answer(20_010, 20_010))
    clock.advance(200)
    session.append({"role": "user", "content": "I am back."})
    session.prepare(system="You work.")
    assert session.status().expected_usage.cache_read > 19_000
    assert session.status().totals.cost is not None


def test_once_it_has_expired_it_is_expected_to_be_written() -> None:
    clock = ScriptedClock(1_800_000_000.0)
    session = conversation(clock)
    clock.advance(480)
    session.append({"role": "user", "content": "I am back."})
    session.prepare(system="You work.")
    assert session.status().expected_usage.cache_read == 0


@pytest.mark.parametrize("model", ["deepseek-chat", "a-model-nobody-knows"])
def test_without_a_published_lifetime_or_a_price_nothing_is_done(model: str) -> None:
    assert conversation(ScriptedClock(1_800_000_000.0), model=model).idle().action == "let-go"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(BadInput, match="keep-warm"):
        conversation(ScriptedClock()).idle("always")  # type: ignore[arg-type]


def test_before_the_first_call_there_is_nothing_to_do() -> None:
    assert Lowwater(model=MODEL).session("new").idle().action == "let-go"
