"""What was measured on other peers: facts lost, histories too long to summarise, prefixes rewritten, thinking left behind."""

import msgspec
import pytest

from lowwater.core.formats.codec import encode_messages
from tests.peers.conftest import EVERY


def test_headroom_untouched_messages_leave_in_the_bytes_they_came_in(opened, tool_loop):
    """Re-serialising busted its users' prefixes: spaces, escapes, numbers and unknown fields are not ours to change."""
    odd = [
        b'{ "role":"system", "content":"caf\\u00e9 \\/ na\\u00efve" }',
        b'{"content":"Fix it.","role":"user","x_weight":1.50e3,"metadata":{"b":1,"a":2.0}}',
    ]
    loop = [msgspec.json.encode(message) for message in tool_loop(60, lines=60)[2:]]
    newest = b'{"role":"user" ,"content":"Go on \\ud83d\\ude80"}'
    session = opened([*odd, *loop, newest])
    request = session.prepare()
    assert session.status().compaction_count == 1
    sent = encode_messages(request.messages, "openai_chat")
    assert sent[:2] == odd
    assert sent[-20:] == [*loop, newest][-20:]


def test_langchain_no_history_is_too_long_to_summarise(opened, coding, summaries):
    """Its default replaced a long one by a sentence saying so; here six windows of it get a real summary."""
    session = opened(coding(250_000))
    assert session.status().prompt > 6 * session.status().context
    event = session.compress()
    assert event is not None
    assert event.summarizer == "extractive"
    assert session.status().prompt < session.status().threshold
    (summary,) = summaries(session.view())
    sections = [
        "## Goal",
        "## Constraints & Preferences",
        "## Progress",
        "## Relevant Files",
        "## Critical Context",
    ]
    assert [section for section in sections if section not in summary] == []
    assert 1_000 <= event.summary_tokens <= 2_000


@EVERY
def test_pydantic_ai_planted_facts_are_in_the_view_or_one_recall_away(opened, step, tool_loop, shown, policy):
    """7 of 20 were left, and the other 13 nowhere."""
    facts = [f"the token of service-{n:02} is tk_{n * 7919:06x}" for n in range(20)]
    loop = tool_loop(60, lines=60)
    planted = [
        message
        for n, fact in enumerate(facts)
        for message in step(
            900 + n, "terminal", {"command": f"vault read {n}"}, f"{fact}\n" + "checked\n" * 90
        )
    ]
    messages = [*loop[:30], *planted, *loop[30:]]
    session = opened(messages, policy=policy)
    session.prepare(offers_recall=True)
    assert session.status().compaction_count == 1
    view = shown(session.view())
    lost = [n for n, fact in enumerate(facts) if fact not in view]
    recalled = [
        n for n in lost if any(facts[n] in hit.text for hit in session.recall(f"token of service-{n:02}"))
    ]
    assert recalled == lost


def thinking_turn(at):
    """Return a turn of a model that signs its thinking: a call with thinking before it, and the result."""
    use = {"type": "tool_use", "id": f"toolu_{at}", "name": "Bash", "input": {"command": f"make {at}"}}
    thought = {"type": "thinking", "thinking": f"Next is {at}.", "signature": "c2lnbmF0dXJl" * 8}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": f"built part {at}\n" * 300}
    return [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [result]}]


@EVERY
@pytest.mark.parametrize(("model", "stays"), [("claude-opus-5-5", False), ("claude-opus-4-6", True)])
def test_no_thinking_stays_behind_a_change_where_the_model_binds_it_to_its_prefix(
    opened, policy, model, stays
):
    """A kept block behind changed messages is a 400 there, and most compactors keep it."""
    turns = [message for at in range(40) for message in thinking_turn(at)]
    session = opened([{"role": "user", "content": "Build every part."}, *turns], model=model, policy=policy)
    sent = session.prepare().as_anthropic()["messages"]
    event = session.status().last_compaction
    assert event is not None
    behind = [
        m for m in sent[event.first_changed :] if m["role"] == "assistant" and isinstance(m["content"], list)
    ]
    thinking = [block for m in behind for block in m["content"] if block["type"] == "thinking"]
    assert behind
    assert bool(thinking) is stays
