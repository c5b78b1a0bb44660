"""Specification C: the fourth phase, what is assembled, and how a summary is framed."""

from itertools import pairwise
from typing import Any

import pytest

from lowwater.core.legality import STUB
from lowwater.core.turns.arrival import NOTE
from lowwater.core.view import Summary
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import ScriptedSummarizer
from lowwater.testing.legality import refusal_of
from lowwater.testing.views import Script

TERMINAL = {"name": "terminal", "input_schema": {"type": "object"}}


# 4. Assemble


@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "openai_responses"])
@pytest.mark.parametrize("ending", ["tool loop", "user", "assistant"])
def test_c4_head_summary_and_tail_stand_in_roles_that_are_legal(opened, loop, told, format, ending) -> None:
    opening = Script(format).system("Be brief.") if format == "openai_chat" else Script(format)
    script = loop(40, script=opening.user("Go."))
    if ending == "user":
        script.says("Done.").user("And now?")
    if ending == "assistant":
        script.says("Nearly done.").user("And now?").says("Now.").user("So?")
    session = opened(script, policy="summary-only")
    session.compress()
    request = session.prepare(tools=[TERMINAL])
    if format == "openai_responses":
        body: dict[str, Any] = request.as_responses()
    else:
        written = request.as_openai() if format == "openai_chat" else request.as_anthropic()
        body = {"max_tokens": 9, **written}
    assert refusal_of({"model": "claude-opus-4-5", **body}, format) is None
    # An answer of several items is one message here, and items in a request.
    items = [item for each in told(script) for item in (each if isinstance(each, list) else [each])]
    assert session.view()[-20:] == items[-20:]


@pytest.mark.parametrize(
    ("first", "last", "role"),
    [(2, 21, "assistant"), (3, 20, "user")],
    ids=["between users", "between answers"],
)
def test_c4_the_summary_takes_the_role_that_keeps_alternating(opened, faithful, first, last, role) -> None:
    script = Script().system("Be brief.")
    for number in range(40):
        script.user(f"Question {number}: " + "why " * 500).says(f"Answer {number}: " + "so " * 500)
    script.user("And?")
    protected = CompressionSettings(protect_first_n=first, protect_last_n=last, target_ratio=0.1)
    settings = Settings(compression=protected)
    session = opened(
        script, policy="summary-only", settings=settings, summarizer=ScriptedSummarizer(faithful)
    )
    session.compress()
    after = session.view()
    at = next(at for at, item in enumerate(internals(session).ledger.view.items) if isinstance(item, Summary))
    assert after[at]["role"] == role
    roles = [message["role"] for message in after[1:]]
    assert all(one != other for one, other in pairwise(roles))


@pytest.mark.parametrize("policy", ["summary-only", "runway", "guarded", "hygiene", "hermes-classic"])
def test_c4_the_note_stands_in_the_summary_and_only_hermes_classic_appends_it_to_the_system_prompt(
    opened, loop, summaries, policy
) -> None:
    session = opened(loop(60), policy=policy)
    for turn in range(3):
        session.compress()
        system = session.prepare().as_openai()["messages"][0]["content"]
        noted = (
            f"You are a coding agent.\n\n{NOTE}" if policy == "hermes-classic" else "You are a coding agent."
        )
        assert system == noted, "on the first compaction only"
        assert summaries(session)[0].message.text.startswith(
            "Earlier turns of this conversation were compacted."
        )
        session.append([{"role": "assistant", "content": "ok"}, {"role": "user", "content": f"more {turn}"}])


def test_c4_results_without_a_call_are_dropped(opened) -> None:
    session = opened(policy="runway")
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "lost"}
    sent = session.prepare([{"role": "user", "content": "Go."}, orphan]).as_openai()["messages"]
    assert sent == [{"role": "user", "content": "Go."}]


def test_c4_calls_without_a_result_get_a_stub(opened, told) -> None:
    script = Script().user("Go.").asks(("terminal", {"command": "ls"}), ("terminal", {"command": "pwd"}))
    session = opened(script.answers("call_2", "/home").user("And?"), policy="runway")
    sent = session.prepare().as_openai()["messages"]
    answers = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert answers == {"call_1": STUB, "call_2": "/home"}
    assert refusal_of({"model": "gpt-4o", "messages": sent}, "openai_chat") is None


# The frame


def test_c_the_summary_is_framed_as_reference(opened, loop, summaries) -> None:
    session = opened(loop(60), policy="summary-only")
    session.compress()
    text = " ".join(summaries(session)[0].message.text.split())
    assert "background from an earlier window, not instructions" in text
    assert "do not redo what it says is done" in text


def test_c_a_user_message_that_follows_is_what_to_answer(opened, loop, summaries) -> None:
    session = opened(loop(60).says("Done.").user("And now the docs."), policy="summary-only")
    session.compress()
    assert summaries(session)[0].message.text.endswith("The user's message that follows is what to answer.")
    assert [m["content"] for m in session.view()].count("And now the docs.") == 1


def test_c_without_one_the_newest_user_message_is_repeated_and_the_task_still_runs(
    opened, loop, told, summaries
) -> None:
    script = loop(
        2, script=Script().system("Be brief.").user("First this.").says("Did it.").user("Now that.")
    )
    session = opened(loop(60, script=script), policy="summary-only")
    session.compress()
    items = list(internals(session).ledger.view.items)
    at = next(at for at, item in enumerate(items) if isinstance(item, Summary))
    assert items[at + 1].message.text == "Now that."
    shown = session.view()[at]
    assert (shown["role"], shown["content"][-1]) == ("user", {"type": "text", "text": "Now that."})
    assert "the task is still running" in summaries(session)[0].message.text
