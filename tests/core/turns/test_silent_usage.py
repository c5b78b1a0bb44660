"""Servers that say nothing of their cache, and summaries asked for by extending a request."""

import json
from typing import Any

import pytest

from lowwater.core.turns.state import Ladder
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import RecordingSink, ScriptedClock, ScriptedSummarizer, write
from tests.generated import generate_session

RECORDED = generate_session("coding", seed=4, turns=60)


def played(usage: Any) -> list[Any]:
    """The compactions of a session whose server reports usage in this form."""
    sink, clock = RecordingSink(), ScriptedClock()
    session = Lowwater(model="gpt-5.4", sinks=[sink], clock=clock).session()
    for raw in RECORDED.as_openai_chat():
        message = json.loads(raw)
        if message["role"] != "assistant":
            session.append(message)
            continue
        prompt = session.prepare().tokens
        clock.advance(5)
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        session.record({"object": "chat.completion", "choices": [choice], "usage": usage(prompt)})
    return sink.compactions


def told(prompt: int) -> dict[str, Any]:
    details = {"cached_tokens": prompt * 9 // 10}
    return {"prompt_tokens": prompt, "completion_tokens": 9, "prompt_tokens_details": details}


@pytest.mark.parametrize(
    "usage",
    [
        lambda prompt: {"prompt_tokens": prompt, "completion_tokens": 9},
        lambda prompt: {"prompt_tokens": prompt, "completion_tokens": 9, "prompt_tokens_details": None},
        lambda _: {"prompt_tokens": 0, "completion_tokens": 0},
    ],
    ids=["no details", "null", "zeros"],
)
def test_a_server_that_says_nothing_of_its_cache_is_not_taken_to_have_lost_it(usage: Any) -> None:
    assert len(played(usage)) <= len(played(told)) + 2


def long_talk() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(40):
        messages.append({"role": "user", "content": f"step {number}: {'look into it ' * 120}"})
        messages.append({"role": "assistant", "content": f"found {number}: {'it is so ' * 120}"})
    return messages


class Rider(ScriptedSummarizer):
    """Says that it asks the session's own model, so that riding is the cheapest way."""

    model = "claude-opus-4-5"


def test_a_summary_on_the_cached_prefix_is_shown_what_the_same_call_brought() -> None:
    rider = Rider(*[write("no")] * 9)
    ceiling = Settings(compression=CompressionSettings(max_view_tokens=32_000))
    session = Lowwater(
        model="claude-opus-4-5", summarizer=rider, settings=ceiling, clock=ScriptedClock()
    ).session()
    messages = long_talk()
    session.prepare([*messages[:60], {"role": "user", "content": "next"}])
    usage = internals(session).expected_usage
    session.record(
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "done"}],
            "usage": {
                "input_tokens": 5,
                "cache_creation_input_tokens": usage.prompt - 5,
                "cache_read_input_tokens": 0,
                "output_tokens": 2,
            },
        }
    )
    brought = [*messages[:60], {"role": "user", "content": "next"}, {"role": "assistant", "content": "done"}]
    session.prepare([*brought, *messages[60:], {"role": "user", "content": "and?"}])
    riding = [request.cached_prefix for request in rider.requests if request.cached_prefix is not None]
    assert riding, "the cache is warm, so extending the last request is cheapest"
    assert any("step 35" in message.text for message in riding[0].since)


def test_a_summarizer_that_gives_none_is_named_with_its_reason() -> None:
    assert Ladder(names=("m",)).name(0) == "m"
    assert Ladder().name(1) == "summarizer 2"
