"""Specification M: a tool result above the insertion limit is shortened before it first enters the prompt."""

from typing import Any

import pytest

from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import Settings, ToolResultSettings
from lowwater.testing.fakes import RecordingSink

OUTPUT = "\n".join(
    f"line {number} of build.log: step_{number} took {number * 7} ms" for number in range(3_000)
)
ERROR = "ValueError: no such step: deploy_to_moon"


def opened(sink: RecordingSink, settings: Settings | None = None, tool: str = "bash") -> Session:
    session = Lowwater(model="gpt-4o", policy="runway", settings=settings, sinks=[sink]).session()
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": '{"command": "make"}'}}
    session.append(
        [
            {"role": "user", "content": "Build it."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": f"{OUTPUT}\n{ERROR}\n{OUTPUT}"},
        ]
    )
    return session


def output_of(request: Any) -> str:
    return str(request.as_openai()["messages"][2]["content"])


def test_with_recall_it_keeps_head_tail_errors_and_a_handle() -> None:
    sink = RecordingSink()
    session = opened(sink)
    request = session.prepare(offers_recall=True)
    shown = output_of(request)
    assert request.tokens < 20_000
    assert shown.startswith("line 0 of build.log")
    assert shown.endswith(OUTPUT[-40:])
    assert ERROR in shown
    assert "recall lw:3" in shown
    assert session.recall("lw:3")[0].text == f"{OUTPUT}\n{ERROR}\n{OUTPUT}"
    (event,) = sink.compactions
    assert (event.mode, event.disturbed) == ("shorten", 0)
    assert event.reclaimed == event.phases[0].removed > 0


def test_later_turns_send_the_same_bytes() -> None:
    session = opened(RecordingSink())
    first = output_of(session.prepare(offers_recall=True))
    session.append([{"role": "assistant", "content": "Built."}, {"role": "user", "content": "Again."}])
    assert output_of(session.prepare(offers_recall=True)) == first


def test_without_recall_what_fits_stays_whole() -> None:
    session = opened(RecordingSink())
    assert output_of(session.prepare()) == f"{OUTPUT}\n{ERROR}\n{OUTPUT}"


def test_without_recall_what_does_not_fit_is_shortened() -> None:
    session = opened(RecordingSink())
    session.learn_context_length(60_000)
    request = session.prepare()
    assert request.tokens < session.status().wall
    assert len(output_of(request)) < len(OUTPUT)
    assert ERROR in output_of(request)


def test_what_was_sent_once_is_not_truncated_later() -> None:
    session = opened(RecordingSink())
    session.prepare()
    session.append([{"role": "assistant", "content": "Built."}, {"role": "user", "content": "Again."}])
    assert output_of(session.prepare(offers_recall=True)) == f"{OUTPUT}\n{ERROR}\n{OUTPUT}"


@pytest.mark.parametrize(
    ("settings", "tool"),
    [
        (Settings(tool_results=ToolResultSettings(insertion_limit_tokens=0)), "bash"),
        (Settings(tool_results=ToolResultSettings(insertion_limit_ratio=0.0)), "bash"),
        (Settings(), "memory"),
        (Settings(), "read_file"),
    ],
    ids=["tokens 0", "ratio 0", "never pruned", "never pruned in the seed presets"],
)
def test_it_is_off_where_it_should_be(settings: Settings, tool: str) -> None:
    session = opened(RecordingSink(), settings, tool)
    assert output_of(session.prepare(offers_recall=True)) == f"{OUTPUT}\n{ERROR}\n{OUTPUT}"
