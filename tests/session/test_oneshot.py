"""One call that compacts a list, for agents that keep their own."""

import asyncio
import json
from typing import Any

import pytest

import lowwater
from lowwater.core.turns.arrival import NOTE
from lowwater.session.internals import internals
from lowwater.testing.fakes import AsyncScriptedSummarizer, ScriptedSummarizer, refuse, write
from lowwater.testing.legality import refusal_of
from tests.generated import generate_session

SESSION = generate_session("coding", seed=95, target_tokens=75_000)
CHAT: list[Any] = [json.loads(raw) for raw in SESSION.as_openai_chat()[:-1]]
FORM = SESSION.as_anthropic()
MESSAGES: list[Any] = [json.loads(raw) for raw in FORM.messages[:-1]]


def test_below_the_threshold_the_same_messages_come_back() -> None:
    given = CHAT[:6]
    done = lowwater.compress(given, model="gpt-4o")
    assert done.messages == given
    assert done.event is None
    assert "below the threshold" in done.explain()


@pytest.mark.parametrize("format", ["chat", "anthropic"])
def test_past_the_threshold_the_list_comes_back_smaller_in_the_format_given(format: str) -> None:
    given = CHAT if format == "chat" else MESSAGES
    done = lowwater.compress(given, model="gpt-4o", policy="threshold")
    assert done.event is not None
    assert len(done.messages) < len(given)
    assert done.messages[-20:] == given[-20:]
    if format == "chat":
        assert refusal_of({"model": "gpt-4o", "messages": done.messages}, "openai_chat") is None
    else:
        tools = json.loads(SESSION.tools_json("anthropic"))
        body = {"model": "claude-opus-4-5", "max_tokens": 9, "tools": tools, "messages": done.messages}
        assert refusal_of(body, "anthropic") is None
    assert "summary" in done.explain()


def test_by_hand_it_compacts_whatever_the_size_and_names_the_focus() -> None:
    summarizer = ScriptedSummarizer(write("no"))
    done = lowwater.compress(
        MESSAGES[:120], model="gpt-4o", force=True, focus="the schema", summarizer=summarizer
    )
    assert done.event is not None
    assert done.event.because.code == "by-hand"
    assert summarizer.requests[0].focus == "the schema"


def test_the_list_it_returned_is_compacted_again_from_where_it_was() -> None:
    first = lowwater.compress(CHAT, model="gpt-4o", policy="threshold", force=True)
    more = json.loads(json.dumps(CHAT[1:]).replace('"call_', '"call_2_'))
    summarizer = ScriptedSummarizer(write("no"))
    second = lowwater.compress(
        [*first.messages, {"role": "assistant", "content": "Done."}, *more],
        model="gpt-4o",
        policy="threshold",
        summarizer=summarizer,
    )
    assert second.event is not None
    assert summarizer.requests[0].previous, "the earlier summary is updated, not summarised"
    framed = [m for m in second.messages if "summary of earlier turns" in str(m.get("content"))]
    assert len(framed) == 1


def test_the_room_for_the_answer_counts() -> None:
    session = lowwater.Lowwater(model="gpt-4o", policy="never").session()
    internals(session).sync_messages(CHAT)
    missing = 104_000 - session.status().prompt
    full = [*CHAT, {"role": "assistant", "content": "Done."}, {"role": "user", "content": " word" * missing}]
    assert lowwater.compress(full, model="gpt-4o", policy="never").event is None
    tight = lowwater.compress(full, model="gpt-4o", policy="never", max_tokens=32_000)
    assert tight.event is not None
    assert tight.event.because.code == "wall"


def test_hermes_classic_gives_its_system_prompt_back_with_the_note() -> None:
    done = lowwater.compress(MESSAGES, model="gpt-4o", policy="hermes-classic", system="Be brief.")
    assert done.system == f"Be brief.\n\n{NOTE}"
    other = lowwater.compress(MESSAGES, model="gpt-4o", policy="runway", system="Be brief.")
    assert other.system == "Be brief."


def test_awaited_it_does_the_same() -> None:
    now = lowwater.compress(CHAT, model="gpt-4o", policy="threshold")
    later = asyncio.run(
        lowwater.acompress(
            CHAT, model="gpt-4o", policy="threshold", summarizer=AsyncScriptedSummarizer(refuse)
        )
    )
    assert later.messages == now.messages
    forced = asyncio.run(lowwater.acompress(MESSAGES[:120], model="gpt-4o", force=True))
    assert forced.event is not None
