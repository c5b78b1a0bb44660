"""A client's own compaction while its conversation goes on: in whatever order requests come, it stays one session."""

from typing import Any

import pytest

from lowwater.testing.provider import Answer, DropConnection, Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through
from tests.gateway.test_gateway_client_ways import QUESTION
from tests.gateway.test_gateway_compaction import SUMMARY

APART = (
    "Here is the conversation so far:\n\n<conversation>\n[User]: Find the defect.\n</conversation>\nSum up."
)
FIRST = {"role": "user", "content": "Find the defect."}
SHORTER = [
    {"role": "user", "content": "What did we do so far?"},
    {"role": "assistant", "content": SUMMARY},
    {"role": "user", "content": "Go on."},
]


def summarises(seen: Seen) -> Answer:
    asks = b"<conversation>" in seen.raw or QUESTION.encode() in seen.raw
    return Say(text=SUMMARY if asks else f"Well, {len(seen.body['messages'])}.")


def said(through: Through, messages: list[Any], *, system: str = "You work.", **headers: str) -> list[Any]:
    """Return a list with its answer and a next word behind it."""
    body = {"model": MODEL, "max_tokens": 900, "system": system, "tools": ANTHROPIC_TOOLS}
    answer = through.post(body | {"messages": messages}, **({"x_session_id": "s"} | headers))
    assert answer.status_code == 200, answer.text
    reply = {"role": "assistant", "content": answer.json()["content"]}
    return [*messages, reply, {"role": "user", "content": "And then?"}]


def summed_up_apart(through: Through) -> None:
    """Ask for a summary as opencode does, in a request of its own."""
    body = {"model": MODEL, "max_tokens": 900, "messages": [{"role": "user", "content": APART}]}
    assert through.post(body, x_session_id="s").status_code == 200


def turns(through: Through) -> list[int]:
    return sorted((session.turns for session in through.store.sessions()), reverse=True)


@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_list_may_go_on_after_a_summary_was_asked_for_apart(start: Starting, more: int) -> None:
    through = start(summarises)
    messages = said(through, [FIRST])
    summed_up_apart(through)
    for _ in range(more):
        messages = said(through, messages)
    said(through, said(through, SHORTER))
    assert turns(through) == [3 + more, 1]


@pytest.mark.parametrize("more", [0, 1, 2])
def test_a_list_may_go_on_after_it_asked_for_a_summary(start: Starting, more: int) -> None:
    through = start(summarises)
    messages = said(through, [FIRST])
    said(through, [*messages[:-1], {"role": "user", "content": QUESTION}])
    for _ in range(more):
        messages = said(through, messages)
    said(through, said(through, SHORTER))
    assert len(through.store.sessions()) == 1


def test_a_summary_asked_for_apart_after_an_answer_that_broke_off_belongs_to_the_conversation(
    start: Starting,
) -> None:
    broken = iter([DropConnection()])
    through = start(
        lambda seen: next(broken, summarises(seen)) if b"And then?" in seen.raw else summarises(seen)
    )
    messages = said(through, [FIRST])
    body = {"model": MODEL, "max_tokens": 900, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    assert through.post(body | {"messages": messages}, x_session_id="s").status_code == 502
    summed_up_apart(through)
    said(through, SHORTER)
    assert turns(through) == [2, 1]


@pytest.mark.parametrize(
    ("system", "name"),
    [("You look around.", "s"), ("You work.", "other"), ("You work.", "")],
    ids=["another agent", "of another name", "of no name"],
)
def test_a_summary_that_is_told_to_somebody_else_does_not_end_a_conversation_that_has_gone_on(
    start: Starting, system: str, name: str
) -> None:
    through = start(summarises)
    messages = said(through, [FIRST])
    summed_up_apart(through)
    messages = said(through, messages)
    said(through, SHORTER, system=system, x_session_id=name)
    said(through, messages)
    assert turns(through) == [3, 1, 1]
