"""Specification C: a reset forgets every compaction; the note in the system prompt is `hermes-classic`'s alone."""

import json
from typing import Any

import pytest

from lowwater.core.turns.arrival import NOTE
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from tests.generated import generate_session

SESSION = generate_session("coding", seed=61, target_tokens=50_000)
FORM = SESSION.as_anthropic()
MESSAGES: list[Any] = [json.loads(raw) for raw in FORM.messages[:-1]]
CHAT: list[Any] = [json.loads(raw) for raw in SESSION.as_openai_chat()[:-1]]
SYSTEM: str = json.loads(FORM.system)


def compacted(policy: str, messages: list[Any], **options: Any) -> Session:
    session = Lowwater(model="model-nobody-knows", policy=policy, **options).session()
    session.prepare(messages, system=SYSTEM if messages is MESSAGES else None)
    assert session.compress() is not None
    return session


def test_a_reset_can_be_undone_like_anything_else() -> None:
    session = compacted("runway", MESSAGES)
    view = session.view()
    internals(session).reset()
    session.rewind("before-rewind-1")
    assert session.view() == view


def test_a_reset_of_a_session_that_was_never_compacted_changes_nothing() -> None:
    session = Lowwater(model="model-nobody-knows").session()
    session.append(MESSAGES)
    internals(session).reset()
    assert session.view() == MESSAGES
    assert session.checkpoints() == []


def test_the_note_in_a_chat_stands_in_its_system_message() -> None:
    session = compacted("hermes-classic", CHAT)
    for _ in range(2):
        first = session.prepare().as_openai()["messages"][0]
        assert first == {"role": "system", "content": f"{SYSTEM}\n\n{NOTE}"}
        session.append([{"role": "assistant", "content": "Done."}, {"role": "user", "content": "More."}])
        session.compress()
    assert session.history()[0] == CHAT[0]


def test_a_system_prompt_of_blocks_gets_the_note_as_a_block() -> None:
    session = Lowwater(model="model-nobody-knows", policy="hermes-classic").session()
    blocks = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    session.prepare(MESSAGES, system=blocks)
    session.compress()
    assert session.prepare(system=blocks).as_anthropic()["system"] == [
        *blocks,
        {"type": "text", "text": NOTE},
    ]


def test_without_a_system_prompt_there_is_no_note() -> None:
    session = Lowwater(model="model-nobody-knows", policy="hermes-classic").session()
    session.append(MESSAGES)
    assert session.compress() is not None
    assert NOTE not in json.dumps(session.prepare().as_anthropic())


@pytest.mark.parametrize("messages", [MESSAGES, CHAT], ids=["anthropic", "chat"])
def test_undoing_the_compaction_takes_the_note_back(messages: list[Any]) -> None:
    session = compacted("hermes-classic", messages)
    session.rewind("before-compaction-1")
    request = session.prepare()
    body = request.as_anthropic() if messages is MESSAGES else request.as_openai()
    assert NOTE not in json.dumps(body)
    assert session.view() == messages


@pytest.mark.parametrize("discard_later", [True, False])
def test_undoing_a_rewind_brings_the_note_back_once(discard_later: bool) -> None:
    session = compacted("hermes-classic", MESSAGES)
    noted = session.prepare(system=SYSTEM).as_anthropic()
    session.rewind("before-compaction-1")
    assert NOTE not in session.prepare(system=SYSTEM).as_anthropic()["system"]
    session.rewind("before-rewind-1", discard_later=discard_later)
    assert session.prepare(system=SYSTEM).as_anthropic() == noted
