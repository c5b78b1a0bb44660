"""Recall reads a branch: neither a fork nor somebody who quotes a summary sees what another conversation was told."""

from typing import Any

import pytest

from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through
from tests.gateway.test_gateway_client_ways import QUESTION
from tests.gateway.test_gateway_compaction import SUMMARY

PIN = "the door's number is 471100"
USER = {"role": "user", "content": "Find the defect."}


def searches(seen: Seen) -> Answer:
    """Sum up where asked to, look for the number where asked for it, and tell what came of that."""
    last = str(seen.body["messages"][-1]["content"])
    if "tool_result" in last:
        return Say(text=f"found: {last}")
    if QUESTION in last:
        return Say(text=SUMMARY)
    if "look it up" in last:
        return CallTools(calls=(Call(name="lowwater_search", arguments={"query": "door number"}),))
    return Say(text=f"well, {len(seen.body['messages'])}")


def said(through: Through, messages: list[Any], word: str, **headers: str) -> list[Any]:
    """Return a list with one more word and its answer."""
    listed = [*messages, {"role": "user", "content": word}]
    body = {"model": MODEL, "max_tokens": 900, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    answer = through.post(body | {"messages": listed}, **headers)
    assert answer.status_code == 200, answer.text
    return [*listed, {"role": "assistant", "content": answer.json()["content"]}]


def recalled(messages: list[Any]) -> str:
    return str(messages[-1]["content"])


@pytest.mark.parametrize("name", ["a", "b", ""], ids=["of the same name", "of another", "of none"])
def test_a_fork_does_not_see_what_its_parent_was_told_later(start: Starting, name: str) -> None:
    through = start(searches, recall=True)
    trunk = said(through, said(through, [], "Find the defect.", x_session_id="a"), "Go on.", x_session_id="a")
    parent = said(through, trunk, PIN, x_session_id="a")
    parent = said(through, parent, "And then?", x_session_id="a")
    fork = said(through, trunk, "Another way.", x_session_id=name or "")
    if name == "a":
        # Both branches go on under one name: the second becomes a session of its own.
        parent = said(through, parent, "On.", x_session_id="a")
        assert "471100" in recalled(said(through, parent, "look it up", x_session_id="a"))
        return
    assert "471100" not in recalled(said(through, fork, "look it up", x_session_id=name))
    assert "471100" in recalled(said(through, parent, "look it up", x_session_id="a"))
    (session,) = [each for each in through.store.sessions() if each.about.parent]
    texts = [one.message.text for one in through.store.messages(session.name, 1, 99, version=session.version)]
    assert not any("471100" in text for text in texts if "found" not in text), "its ledger does not have it"
    assert texts[:4] == ["Find the defect.", "well, 1", "Go on.", "well, 3"]


def compacted(through: Through, **headers: str) -> str:
    """Have a conversation that knows the number summed up by its client, and return how a list begins that quotes it."""
    messages = said(through, [], "Find the defect.", **headers)
    messages = said(through, messages, PIN, **headers)
    said(through, messages, QUESTION, **headers)
    return f"This session is being continued.\n{SUMMARY}\n"


@pytest.mark.parametrize(
    ("own", "other"),
    [("a", "b"), ("a", ""), ("", "b"), ("", "")],
    ids=["another name", "no name", "a name where there was none", "no names at all"],
)
def test_a_conversation_that_quotes_a_summary_does_not_become_the_session_it_quotes(
    start: Starting, own: str, other: str
) -> None:
    through = start(searches, recall=True)
    quoted = compacted(through, x_session_id=own)
    assert "471100" not in recalled(said(through, [], f"{quoted}look it up", x_session_id=other))
    assert len(through.store.sessions()) == 2
    assert not any(each.about.parent for each in through.store.sessions())


@pytest.mark.parametrize(
    ("name", "joins"), [("a", False), ("", True)], ids=["by its name", "by an operator's flag"]
)
def test_a_clients_own_compaction_goes_on(start: Starting, name: str, joins: bool) -> None:
    through = start(searches, recall=True, joins_by_summary=joins)
    quoted = compacted(through, x_session_id=name)
    assert "471100" in recalled(said(through, [], f"{quoted}look it up", x_session_id=name))
    assert len(through.store.sessions()) == 1


def test_a_name_is_never_joined_by_a_summary_whatever_the_operator_says(start: Starting) -> None:
    through = start(searches, store=MemoryStore(), recall=True, joins_by_summary=True)
    quoted = compacted(through, x_session_id="a")
    assert "471100" not in recalled(said(through, [], f"{quoted}look it up", x_session_id="b"))
    assert len(through.store.sessions()) == 2


@pytest.mark.parametrize("policy", ["never", "prune-naive"])
def test_a_client_that_goes_back_under_its_name_does_not_recall_what_it_took_back(
    start: Starting, policy: str
) -> None:
    through = start(searches, recall=True, policy=policy)
    trunk = said(through, said(through, [], "Find the defect.", x_session_id="a"), "Go on.", x_session_id="a")
    said(through, said(through, trunk, PIN, x_session_id="a"), "And then?", x_session_id="a")
    back = said(through, trunk, "Another way.", x_session_id="a")
    back = said(through, back, "look it up", x_session_id="a")
    assert "471100" not in recalled(back)
    assert "found" in recalled(back), "it was searched for"
    (session,) = through.store.sessions()
    history = through.store.messages(session.name, 1, 99, version=session.version)
    assert any(PIN in one.message.text for one in history), "the ledger has it still"


def test_a_client_that_keeps_its_first_turns_and_a_summary_recalls_the_rest(start: Starting) -> None:
    through = start(searches, recall=True)
    trunk = said(through, said(through, [], "Find the defect.", x_session_id="a"), "Go on.", x_session_id="a")
    whole = said(through, said(through, trunk, PIN, x_session_id="a"), "And then?", x_session_id="a")
    said(through, whole, QUESTION, x_session_id="a")
    listed = [
        *trunk,
        {"role": "user", "content": f"[CONTEXT COMPACTION] Earlier turns, in short:\n{SUMMARY}"},
    ]
    assert "471100" in recalled(said(through, listed, "look it up", x_session_id="a"))
    assert len(through.store.sessions()) == 1
