"""Windows that callers set and errors taught, and refusals of images (issue 14, point 13)."""

from pathlib import Path
from typing import Any

import pytest

from lowwater.core.formats.refusals import is_image_refusal
from lowwater.integrations.framework import learn_limit
from lowwater.session.library import Lowwater
from lowwater.testing.fakes import RecordingSink, ScriptedClock

MODEL = "claude-sonnet-4-5"
SOLD = 200_000
TOO_LONG = "prompt is too long: 61234 tokens > 40000 maximum"
MANY_IMAGES = (
    "messages.3.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size "
    "for many-image requests: 2000 pixels"
)


def answer(prompt: int) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": "done"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": prompt, "output_tokens": 3},
    }


def test_what_a_caller_sets_holds_for_that_session_alone_and_is_kept_with_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    lowwater = Lowwater(model=MODEL, store=store, clock=ScriptedClock())
    one, two = lowwater.session("one"), lowwater.session("two")
    one.append({"role": "user", "content": "go"})
    one.learn_context_length(32_000)
    assert (one.status().context, two.status().context) == (32_000, SOLD)
    again = Lowwater(model=MODEL, store=store, clock=ScriptedClock())
    assert again.session("one").status().context == 32_000
    assert again.session("three").status().context == SOLD


def test_what_an_error_taught_holds_for_every_session_at_that_place_and_is_kept(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    lowwater = Lowwater(model=MODEL, store=store, clock=ScriptedClock())
    one, two = lowwater.session("one"), lowwater.session("two")
    one.append({"role": "user", "content": "go"})
    one.learn_context_length(RuntimeError(TOO_LONG))
    assert (one.status().context, two.status().context) == (40_000, 40_000)
    two.use(MODEL, base_url="http://elsewhere")
    assert two.status().context == SOLD
    again = Lowwater(model=MODEL, store=store, clock=ScriptedClock())
    assert again.session("one").status().context == 40_000


def test_where_a_window_was_learned_is_kept_without_what_the_url_holds(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'kept.db'}"
    urls = [
        "http://bob:hunter2222@host:4141/lw-capability/v1",
        "http://bob:other3333@host:4141/lw-capability/v1",
    ]
    lowwater = Lowwater(model=MODEL, base_url=urls[0], store=store, clock=ScriptedClock())
    session = lowwater.session("one")
    session.append({"role": "user", "content": "go"})
    session.learn_context_length(RuntimeError(TOO_LONG))
    session.learn_context_length(30_000)
    again = Lowwater(model=MODEL, base_url=urls[0], store=store, clock=ScriptedClock()).session("one")
    assert again.status().context == 30_000
    again.use(MODEL, base_url=urls[1])
    assert again.status().context == SOLD, "another URL at the same host is another place"
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"http://host:4141" in kept
    assert [word for word in (b"hunter2222", b"lw-capability", b"bob:") if word in kept] == []


@pytest.mark.parametrize(
    ("prompt", "context"), [(39_000, 40_000), (40_001, SOLD)], ids=["within the limit", "beyond it"]
)
def test_a_learned_window_is_given_up_when_a_larger_prompt_was_accepted(prompt: int, context: int) -> None:
    lowwater = Lowwater(model=MODEL, clock=ScriptedClock())
    one, two = lowwater.session("one"), lowwater.session("two")
    one.append({"role": "user", "content": "go"})
    one.learn_context_length(RuntimeError(TOO_LONG))
    one.prepare()
    one.record(answer(prompt))
    assert (one.status().context, two.status().context) == (context, context)


def test_a_larger_limit_that_is_reported_later_takes_its_place() -> None:
    session = Lowwater(model=MODEL, clock=ScriptedClock()).session()
    session.learn_context_length(RuntimeError(TOO_LONG))
    session.learn_context_length(RuntimeError(TOO_LONG.replace("40000", "60000")))
    assert session.status().context == 60_000


@pytest.mark.parametrize(
    ("status", "said", "is_one"),
    [
        (400, MANY_IMAGES, True),
        (400, "Too many images in request: 120 > 100", True),
        (400, "messages: at most 50 images are allowed", True),
        (400, TOO_LONG, False),
        (429, "too many images per minute", False),
        (400, "Could not process image", False),
        (200, MANY_IMAGES, False),
    ],
)
def test_refusals_of_images_are_told_from_others(status: int, said: str, is_one: bool) -> None:
    assert is_image_refusal(status, said.encode()) is is_one


def test_after_such_a_refusal_older_images_are_dropped_and_the_newest_stay() -> None:
    sink = RecordingSink()
    session = Lowwater(model=MODEL, sinks=[sink], clock=ScriptedClock()).session()
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 40},
    }
    for number in range(3):
        use = {"type": "tool_use", "id": f"t{number}", "name": "screenshot", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": [picture]}
        session.append({"role": "user", "content": [{"type": "text", "text": f"Look {number}."}, picture]})
        session.append({"role": "assistant", "content": [use]})
        session.append({"role": "user", "content": [result]})
        if number < 2:
            session.append({"role": "assistant", "content": f"Seen {number}."})
    assert learn_limit(session, RuntimeError(MANY_IMAGES))
    sent = str(session.prepare().as_anthropic()["messages"])
    assert sent.count("'type': 'image'") == 2, "the newest question's and the newest result's"
    assert sink.compactions[-1].because.code == "images-refused"
    assert all(f"Look {number}." in sent for number in range(3))
    assert learn_limit(session, RuntimeError(MANY_IMAGES)), "then those of the newest exchange"
    assert not learn_limit(session, RuntimeError(MANY_IMAGES)), "and there is nothing more to do"
