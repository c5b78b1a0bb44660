"""Usage that cannot be true is not believed, and never costs an answer (issue 14, point 33)."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowwater.core.formats.codec import decode_response
from lowwater.core.reconcile import says_the_same
from lowwater.core.strict_json import as_strict_json, write_json
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.testing.fakes import RecordingSink, ScriptedClock

MODEL = "claude-sonnet-4-5"
BROKEN = pytest.mark.parametrize(
    "figure",
    [-1, 1.5, "1600", 2**63, 10**19, 10**30, [1], True],
    ids=["negative", "fractional", "textual", "2**63", "10**19", "10**30", "a list", "a boolean"],
)


def answer(number: int, usage: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": f"Answer {number}: " + "so it is, and so it was. " * 60}]
    return {
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": "end_turn",
        "usage": usage,
    }


def completion(usage: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


def talk(session: Session, clock: ScriptedClock, usages: list[Any]) -> None:
    for number, usage in enumerate(usages):
        session.append({"role": "user", "content": f"Question {number}? " + "Tell me more of it. " * 60})
        session.prepare()
        session.record(answer(number, usage))
        clock.advance(20)


def test_one_absurd_figure_without_others_after_it_does_not_lead_to_compactions() -> None:
    sink, clock = RecordingSink(), ScriptedClock(1_000.0)
    session = Lowwater(model=MODEL, sinks=[sink], clock=clock).session()
    absurd = {"input_tokens": 1_000_000, "output_tokens": 20}
    talk(session, clock, [absurd, *[None] * 28])
    assert sink.compactions == []
    assert session.status().prompt < 40_000


def test_what_is_reported_again_and_again_is_believed_after_all() -> None:
    """A client may keep a very large system prompt to itself."""
    clock = ScriptedClock(1_000.0)
    session = Lowwater(model=MODEL, clock=clock).session()
    talk(session, clock, [{"input_tokens": size, "output_tokens": 20} for size in (400_000, 400_600)])
    assert session.status().prompt > 400_000


@pytest.mark.parametrize(
    ("form", "figure"),
    [("anthropic", -1), ("anthropic", 10**30), ("chat", "1600"), ("chat", 2**63), ("responses", 1.5)],
)
def test_an_answer_is_kept_whatever_its_usage_says(form: str, figure: Any, tmp_path: Path) -> None:
    responses = {
        "anthropic": answer(1, {"input_tokens": figure, "output_tokens": 20}),
        "chat": completion({"prompt_tokens": figure, "completion_tokens": 20}),
        "responses": {
            "object": "response",
            "status": "completed",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "m1",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "done", "annotations": []}],
                }
            ],
            "usage": {"input_tokens": figure, "output_tokens": 20},
        },
    }
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    session = Lowwater(model=MODEL, store=store, clock=ScriptedClock()).session("kept")
    session.append({"role": "user", "content": "go"})
    session.prepare()
    session.record(responses[form])
    again = Lowwater(model=MODEL, store=store, clock=ScriptedClock()).session("kept")
    assert [message.role for message in internals(again).ledger.view.messages] == ["user", "assistant"]
    assert again.status().totals.cost is None, "what nobody knows is not nothing"


@BROKEN
def test_outputs_and_cache_figures_are_doubted_too(figure: Any) -> None:
    for name in ("output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        decoded = decode_response(write_json(answer(1, {"input_tokens": 10, name: figure})))
        assert decoded.usage is None
        assert decoded.doubt


def test_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = ScriptedClock(1_000.0)
    session = Lowwater(model=MODEL, clock=clock).session("doubting")
    with caplog.at_level(logging.WARNING, logger="lowwater"):
        talk(session, clock, [{"input_tokens": -5, "output_tokens": 20}] * 3)
    said = [record.getMessage() for record in caplog.records if "not believed" in record.getMessage()]
    assert len(said) == 1
    assert "doubting" in said[0]
    assert "-5" in said[0]


def test_a_call_made_beside_the_conversation_is_not_believed_either() -> None:
    session = Lowwater(model=MODEL, clock=ScriptedClock()).session()
    session.append({"role": "user", "content": "go"})
    session.prepare()
    before = session.status()
    internals(session).record_side_call(answer(1, {"input_tokens": 10**19, "output_tokens": 3}))
    assert session.status().prompt == before.prompt


# Whatever else an answer says beside its content

FORMATS: dict[str, dict[str, Any]] = {
    "anthropic": answer(
        1, {"input_tokens": 9, "output_tokens": 2, "service_tier": "standard", "speed": "standard"}
    )
    | {"id": "msg_1", "stop_sequence": None, "diagnostics": {"cache_miss_reason": {"type": "none"}}},
    "chat": completion({"prompt_tokens": 9, "completion_tokens": 2})
    | {"id": "c1", "model": "gpt-5.5", "service_tier": "default", "system_fingerprint": "f"},
    "responses": {
        "object": "response",
        "id": "resp_1",
        "status": "incomplete",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"},
        "model": "gpt-5.5",
        "service_tier": "default",
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "done", "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 9, "output_tokens": 2},
    },
}
CONTENT = ("content", "choices", "output")
ODD = [b"1e999", b"-1", b"[]", b"{}", b'[{"":0}]', b"true", b'"\\ud800"', b'"\xff"', b"NaN", b"-Infinity"]


def places() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield each format's fields beside the content."""
    for name, whole in FORMATS.items():
        yield from ((name, (field,)) for field in whole if field not in CONTENT)
        yield from ((name, ("usage", field)) for field in whole["usage"])
        if name == "chat":
            yield from ((name, ("choices", 0, field)) for field in ("finish_reason", "logprobs"))


def odd(whole: dict[str, Any], place: tuple[Any, ...], value: bytes) -> bytes:
    """Return an answer with other bytes in one place."""
    changed = json.loads(json.dumps(whole))
    holder = changed
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = "@here@"
    return json.dumps(changed).encode().replace(b'"@here@"', value)


@pytest.mark.parametrize(("name", "place"), list(places()), ids=str)
def test_no_odd_value_beside_the_content_loses_an_answer(name: str, place: tuple[Any, ...]) -> None:
    whole = FORMATS[name]
    content = decode_response(json.dumps(whole).encode()).message
    for value in ODD:
        clock = ScriptedClock()
        session = Lowwater(model=MODEL, clock=clock).session()
        session.append({"role": "user", "content": "go"})
        session.prepare()
        session.record(odd(whole, place, value))
        newest = internals(session).ledger.view.messages[-1]
        assert says_the_same(newest, content), f"{place} = {value!r}"


def test_a_tier_that_is_no_text_is_discarded_alone_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    session = Lowwater(model="gpt-5.5", clock=ScriptedClock()).session("tiers")
    with caplog.at_level(logging.WARNING, logger="lowwater"):
        for number in range(3):
            session.append({"role": "user", "content": f"go {number}"})
            session.prepare()
            session.record(odd(FORMATS["chat"], ("service_tier",), b"1e999"))
    assert [message.role for message in internals(session).ledger.view.messages] == ["user", "assistant"] * 3
    totals = session.status().totals
    assert totals.output == 6, "the figures are good"
    assert totals.cost is None, "the price of a tier that nobody can read is not known"
    said = [record.getMessage() for record in caplog.records if "service_tier" in record.getMessage()]
    assert len(said) == 1
    assert "tiers" in said[0]


def test_an_sdks_answer_with_half_a_character_is_kept() -> None:
    session = Lowwater(model=MODEL, clock=ScriptedClock()).session()
    session.append({"role": "user", "content": "go"})
    session.prepare()
    session.record(answer(1, None) | {"content": [{"type": "text", "text": "half \ud83d of it"}]})
    assert internals(session).ledger.view.messages[-1].text == "half \ufffd of it"


def test_valid_json_keeps_its_bytes() -> None:
    for text in (b'"NaN"', b'"\\ud83d\\ude00"', b'"\\\\ud800"', '"ü"'.encode()):
        assert as_strict_json(text) == text
    assert as_strict_json(b'{"a":[NaN,"NaN"]}') == b'{"a":[null,"NaN"]}'
