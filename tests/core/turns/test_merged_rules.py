"""Rules that meet: squeezing beside summaries and prohibitions, undo beside reminders, images beside bound thinking."""

import base64
from typing import Any

import pytest
from msgspec.structs import replace

from lowwater import Lowwater
from lowwater.core.entries import Appended
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms.spans import repeat_newest_user, replace_span
from lowwater.core.mechanisms.truncate import squeeze
from lowwater.core.messages import Span
from lowwater.core.summary.frame import index_in
from lowwater.core.summary.template import Section
from lowwater.core.view import Item, Summary
from lowwater.session.internals import internals
from lowwater.testing.views import Script, making, size

FORBIDDEN = "never delete the production database"
REMINDER = "<system-reminder>\nYour todo list is empty.\n</system-reminder>"


def ledger_of(script: Script) -> Ledger:
    messages = tuple(script.messages())
    return Ledger().append(Appended(at=0.0, messages=messages, tokens=tuple(map(size, messages))))


def summarized(script: Script, text: str, stop: int) -> list[Item]:
    return list(replace_span(list(ledger_of(script).view.items), Span(start=1, stop=stop), text, making()))


@pytest.fixture
def talked() -> list[Item]:
    """Return a view with a long summary that ends with a prohibition, and a large new result behind it."""
    script = Script("anthropic").user("Look.")
    for number in range(6):
        script.calls("bash", {"command": str(number)}, f"output {number} " * 20)
    script.user("And now?").calls("bash", {"command": "x"}, "new " * 3_000)
    text = f'## Goal\n{"word " * 900}\n\n## {Section.CONSTRAINTS}\n- "{FORBIDDEN}"'
    return summarized(script, text, stop=9)


def test_only_what_is_new_is_shortened_where_nothing_else_may_change(talked: list[Item]) -> None:
    last = len(talked) - 1
    tokens = sum(item.tokens for item in talked) - 3_400
    squeezed = squeeze(talked, making(), tokens=tokens, among=range(last, last + 1))
    assert [at for at, (old, new) in enumerate(zip(talked, squeezed, strict=True)) if old is not new] == [
        last
    ]


def test_a_summary_that_is_squeezed_keeps_what_the_user_forbade(talked: list[Item]) -> None:
    tokens = sum(item.tokens for item in talked) - 3_400
    (before,) = [item for item in talked if isinstance(item, Summary)]
    (after,) = [item for item in squeeze(talked, making(), tokens=tokens) if isinstance(item, Summary)]
    assert after.tokens < before.tokens
    assert FORBIDDEN in after.message.text


def test_the_index_of_a_summary_that_is_squeezed_gets_shorter_and_keeps_the_names_worth_most() -> None:
    script = Script("anthropic").user("Look.")
    for number in range(6):
        names = " ".join(f"src/part_{number}/file_{at}.py" for at in range(60))
        script.calls("bash", {"command": str(number)}, f"{names} " + "word " * 300)
    items = list(ledger_of(script.user("And now?").calls("bash", {"command": "x"}, "new")).view.items)
    context = replace(making(), offers_recall=True)
    listed = list(replace_span(items, Span(start=1, stop=13), f"## Goal\n{'word ' * 300}", context))
    (before,) = [item for item in listed if isinstance(item, Summary)]
    squeezed = squeeze(listed, context, tokens=sum(item.tokens for item in listed) - before.tokens // 2)
    (after,) = [item for item in squeezed if isinstance(item, Summary)]
    index = index_in(after.message.text)
    assert after.tokens <= before.tokens // 2 + 1
    assert "src/part_" in index
    assert set(index.split()) & set(index_in(before.message.text).split())
    assert len(index) < len(index_in(before.message.text))


def test_after_an_undo_the_users_own_words_are_repeated_and_no_reminder() -> None:
    script = Script("anthropic").user("First ask.").calls("bash", {"command": "1"}, "out " * 50)
    script.user("Fix the parser.").calls("bash", {"command": "2"}, "out " * 50)
    script.user(REMINDER).calls("bash", {"command": "3"}, "out " * 50).user("This is taken back.")
    ledger = ledger_of(script)
    kept = summarized(script, "A short summary.", stop=len(ledger.messages) - 1)[:-1]
    repeated = repeat_newest_user(kept, ledger.messages, making())
    assert repeated is not None
    assert repeated.items[-1].message.text == "Fix the parser."
    assert repeat_newest_user(repeated.items, ledger.messages, making()) is None


def picture() -> dict[str, Any]:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 4_000).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def test_thinking_behind_dropped_images_goes_with_them() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, picture()]}
    ]
    for number in range(3):
        thought = {"type": "thinking", "thinking": f"hm {number}", "signature": "c2ln"}
        messages.append(
            {"role": "assistant", "content": [thought, {"type": "text", "text": f"I see {number}"}]}
        )
        messages.append({"role": "user", "content": [{"type": "text", "text": f"next {number}"}, picture()]})
    session = Lowwater(model="claude-opus-5-5", store="memory:").session()
    session.prepare(messages, thinking={"type": "adaptive"})
    assert internals(session).drop_images()
    event = internals(session).last_compaction
    assert event is not None
    assert event.disturbed > 0
    sent = session.prepare(messages, thinking={"type": "adaptive"}).as_anthropic()["messages"]
    assert not any(part["type"] == "thinking" for message in sent for part in message["content"])


def test_what_another_model_accepted_does_not_widen_the_window_of_the_one_in_use() -> None:
    session = Lowwater(
        model="gpt-5.4", fallbacks=["claude-sonnet-4-5"], policy="never", store="memory:"
    ).session()
    session.use("claude-sonnet-4-5")
    session.learn_context_length("prompt is too long: 40000 tokens > 32000 maximum")
    session.use("gpt-5.4")
    session.prepare([{"role": "user", "content": "word " * 60_000}])
    session.use("claude-sonnet-4-5")
    session.record(
        {
            "choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
            "model": "gpt-5.4",
            "usage": {"prompt_tokens": 60_010, "completion_tokens": 2},
        }
    )
    assert session.status().context == 32_000


def test_a_cliff_is_where_a_policy_that_avoids_it_acts() -> None:
    session = Lowwater(model="gemini-2.5-pro", policy="runway", store="memory:").session()
    assert (session.status().acts_at, session.status().threshold) == ("cliff", 200_001)
    assert internals(session).should_compress(200_001)
