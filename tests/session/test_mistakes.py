"""What a user of the library may get wrong: each mistake gets one sentence, and nothing is lost or billed twice."""

import logging
from math import inf, nan
from typing import Any

import pytest

from lowwater import BadInput, Lowwater, LowwaterError, Settings
from lowwater.session.internals import internals
from lowwater.testing.fakes import ScriptedClock

MODEL = "claude-opus-5-5"
anyhow: Any = Settings
library: Any = Lowwater
ANSWER = {
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "It is in auth.py."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 12, "output_tokens": 7},
}


def user(text):
    return {"role": "user", "content": text}


def session(**options):
    return Lowwater(model=MODEL, store="memory:", **options).session("s")


def talked():
    """Return a session after one turn, and the list its client has by now."""
    begun = session()
    listed = [user("Where is the login?")]
    begun.prepare(listed)
    begun.record(ANSWER)
    return begun, [*listed, {"role": "assistant", "content": ANSWER["content"]}]


@pytest.mark.parametrize("system", [None, "You are a coder."], ids=["no system", "with a system message"])
def test_new_messages_alone_are_refused_and_the_history_stays(system):
    begun, listed = talked()
    new = (
        [{"role": "system", "content": system}, user("And the logout?")]
        if system
        else [user("And the logout?")]
    )
    with pytest.raises(BadInput, match=r"whole conversation.*starts_over=True"):
        begun.prepare(new)
    assert begun.view() == listed


def test_a_whole_list_that_was_edited_is_the_clients_will():
    begun, listed = talked()
    begun.prepare([user("Where is the logout?"), listed[1], user("And now?")])
    assert begun.view()[0] == user("Where is the logout?")


def test_a_session_starts_over_when_told_to():
    begun, _ = talked()
    begun.prepare([user("Something else.")], starts_over=True)
    assert begun.view() == [user("Something else.")]
    assert len(begun.history()) == 3


def test_an_answer_recorded_twice_is_billed_and_kept_once(caplog):
    begun, listed = talked()
    before = begun.status().totals
    begun.record(ANSWER)
    assert begun.status().totals == before
    assert begun.view() == listed
    assert "recorded before" in caplog.text


def test_the_same_answer_to_another_call_is_recorded():
    begun, listed = talked()
    begun.prepare([*listed, user("Are you sure?")])
    begun.record(ANSWER)
    assert begun.status().totals.turns == 2
    assert len(begun.view()) == 4


@pytest.mark.parametrize(
    "content",
    [b"hello", [{"type": "text", "text": b"hello"}], bytearray(b"hello")],
    ids=["bytes", "in a part", "bytearray"],
)
def test_bytes_are_not_sent_as_base64(content):
    with pytest.raises(BadInput, match="message 1: bytes are not valid message content"):
        session().prepare([user("a"), user(content)])


@pytest.mark.parametrize(
    ("model", "base_url", "hint"),
    [
        ("claud-opus-5-5", "", "did you mean claude-opus-5-5?"),
        ("claude-opus-5-5-turbo", "http://127.0.0.1:1/v1", "did you mean claude-opus-5-5?"),
        ("somebodys-own-model-7b", "", "no dollar figures"),
    ],
    ids=["mistyped", "mistyped at a URL", "unknown"],
)
def test_a_model_without_a_price_is_told_of_once(model, base_url, hint, caplog):
    for _ in range(2):
        Lowwater(model=model, base_url=base_url, store="memory:")
    assert caplog.text.count("no price is known") == 1
    assert hint in caplog.text


def test_a_local_model_needs_no_price(caplog):
    Lowwater(model="somebodys-local-model", base_url="http://127.0.0.1:1/v1", store="memory:")
    assert caplog.text == ""


@pytest.mark.parametrize(
    "orphan",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone-1", "content": "secret"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "gone-1", "content": "secret"},
                {"type": "text", "text": "Go on."},
            ],
        },
    ],
    ids=["alone", "beside words"],
)
def test_a_result_without_its_call_is_told_of_once(orphan, caplog):
    begun = session()
    for _ in range(2):
        sent = begun.prepare([user("a"), orphan]).as_anthropic()["messages"]
        assert "secret" not in str(sent)
    assert caplog.text.count("'gone-1' is left out") == 1
    assert "secret" not in caplog.text


def test_sections_of_settings_may_be_mappings():
    assert anyhow(compression={"threshold": 0.3}).compression.threshold == 0.3
    given = Lowwater(model=MODEL, store="memory:", settings={"compression": {"policy": "never"}})
    assert given.session().status().policy == "never"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: anyhow(compression={"treshold": 0.3}), "did you mean threshold"),
        (lambda: anyhow(compression={"threshold": 7}), "threshold must be"),
        (lambda: anyhow(output=3), "output must be a mapping"),
        (lambda: session(settings={"policy": "never"}), "it belongs under compression"),
        (lambda: session(settings=3), "settings must be"),
        (lambda: session(fallbacks="gpt-5.5"), "fallbacks must be a list"),
        (lambda: session(fallbacks=[3]), "each of fallbacks must be text"),
        (lambda: session(mechanisms="own"), "mechanisms must be a list"),
        (lambda: session(deadline="2"), "deadline must be a number"),
        (lambda: session(sinks=[3]), "method `record`"),
        (lambda: session(hooks=[3]), "method `on_pre_compress`"),
        (lambda: session(base_url=3), "base_url must be text"),
        (lambda: session(on_warning=3), "on_warning must be a function"),
        (lambda: session(clock=3), "is no clock"),
        (lambda: library(model="", store="memory:"), "model must be text"),
        (lambda: library(model=3, store="memory:"), "model must be text"),
        (lambda: library(model=MODEL, store=3), "store must be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_argument_of_the_library_gets_a_sentence(make, said):
    with pytest.raises(BadInput, match=said):
        make()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"system": 5}, "system must be text or a list, not 5"),
        ({"system": [3]}, "system must be a list of objects"),
        ({"system": {"type": "text", "text": "x"}}, "system must be text or a list"),
        ({"tools": 3}, "tools must be a list, not 3"),
        ({"tools": "search"}, "tools must be a list"),
        ({"tools": [3]}, "tools must be a list of objects"),
        ({"max_tokens": "100"}, "max_tokens must be a whole number of at least 1, not '100'"),
        ({"max_tokens": -1}, "max_tokens must be"),
        ({"max_tokens": 1.5}, "max_tokens must be"),
        ({"max_tokens": True}, "max_tokens must be"),
        ({"thinking": 3}, "thinking must be a mapping"),
        ({"tool_choice": 3}, "tool_choice must be text or a mapping"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("model", [MODEL, "gpt-5.5"])
def test_a_wrong_argument_of_prepare_gets_a_sentence_and_stores_nothing(model, options, said):
    begun = Lowwater(model=model, store="memory:").session()
    with pytest.raises(BadInput, match=said):
        begun.prepare([user("a")], **options)
    assert begun.history() == []


@pytest.mark.parametrize("wrong", [3, None, b"x", 1.5, nan, ["x"]], ids=repr)
@pytest.mark.parametrize("method", ["recall", "use", "checkpoint", "rewind", "diff"])
def test_a_wrong_argument_of_a_session_gets_a_sentence(method, wrong):
    if method in {"rewind", "diff"} and wrong == 3:
        wrong = True  # a number is a ledger position
    with pytest.raises(BadInput, match="must be"):
        getattr(talked()[0], method)(wrong)


@pytest.mark.parametrize("wrong", [3, None, b"x", 1.5, nan, ["x"]], ids=repr)
def test_a_wrong_handle_to_expand_gets_a_sentence(wrong):
    with pytest.raises(BadInput, match="must be"):
        internals(talked()[0]).expand(wrong)


@pytest.mark.parametrize("wrong", ["x", -1, 1.5, nan, inf], ids=repr)
def test_only_a_count_can_be_compared_with_the_threshold(wrong):
    with pytest.raises(BadInput, match="tokens must be"):
        internals(session()).should_compress(wrong)


@pytest.mark.parametrize("at", [nan, inf, "noon", None], ids=repr)
def test_a_clock_that_tells_no_time_gets_a_sentence(at):
    clock = ScriptedClock(at)
    with pytest.raises(BadInput, match="finite number"):
        Lowwater(model=MODEL, store="memory:", clock=clock).session("s")


def test_a_mistake_is_an_error_of_ours():
    with pytest.raises(LowwaterError):
        session().learn_context_length(True)


@pytest.fixture(autouse=True)
def _told(caplog, monkeypatch):
    caplog.set_level(logging.WARNING, logger="lowwater")
    monkeypatch.setattr("lowwater.session.dependencies._DOUBTED", set())
