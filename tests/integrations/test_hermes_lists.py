"""Hermes' lists and the histories they stand for, without Hermes."""

import random
from typing import Any

import pytest

from lowwater.core.reconcile import branch_of
from lowwater.integrations.hermes.history import (
    ShownHistories,
    key_of,
    keys_of,
    pick_messages,
    sent_for,
    sent_form,
    with_users_joined,
)
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

Json = dict[str, Any]


def call(number: int, arguments: str = '{"a": 1, "b": 2}') -> Json:
    function = {"name": "read", "arguments": arguments}
    return {"id": f"c{number}", "type": "function", "function": function}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"role": "user", "content": "x"}, {"role": "user", "content": " x\n"}),
        (
            {"role": "user", "content": "x"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
            },
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [call(1)]},
            {"role": "assistant", "content": "", "reasoning": "r", "tool_calls": [call(1, '{"b":2,"a":1}')]},
        ),
    ],
    ids=["blanks", "marks", "spelling"],
)
def test_what_says_the_same_has_one_key(one: Json, other: Json):
    assert key_of(one) == key_of(other)


@pytest.mark.parametrize(
    "other",
    [
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "y"},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "user", "content": "x", "tool_calls": [call(1)]},
    ],
    ids=["role", "words", "answer", "calls"],
)
def test_what_says_something_else_has_another(other: Json):
    assert key_of({"role": "user", "content": "x"}) != key_of(other)


def test_a_message_is_sent_without_hermes_notes_and_with_the_text_it_sends_instead():
    noted = {
        "role": "user",
        "content": "hi",
        "api_content": "hi\n\nmemory",
        "_db_persisted": True,
        "timestamp": 1,
    }
    assert sent_form(noted) == {"role": "user", "content": "hi\n\nmemory"}
    asked = {"role": "assistant", "content": None, "tool_calls": [call(1)], "finish_reason": "tool_calls"}
    assert sent_form(asked) == {"role": "assistant", "content": None, "tool_calls": [call(1)]}


def test_our_bytes_are_sent_again_unless_hermes_adds_something():
    ours = {"role": "tool", "name": "read", "tool_call_id": "c1", "content": "x"}
    shorter = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    richer = {**ours, "reasoning_content": ""}
    assert sent_for(ours, shorter) is ours
    assert sent_for(ours, richer) is richer


def test_equal_messages_are_taken_in_order():
    theirs = [{"role": "user", "content": "x", "n": 1}, {"role": "user", "content": "x", "n": 2}]
    wanted = [
        {"role": "user", "content": "x"},
        {"role": "user", "content": "z"},
        {"role": "user", "content": "x"},
    ]
    assert pick_messages(theirs, keys_of(theirs), wanted) == [theirs[0], wanted[1], theirs[1]]


class Host:
    """A list like Hermes': it grows, it joins neighbouring users, and it adopts what is published to it or does not."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.listed: list[Json] = []
        self.said: list[str] = []
        self._calls = 0

    def turn(self) -> None:
        words = f"question {len(self.said)}"
        self.said.append(words)
        self.listed = with_users_joined([*self.listed, {"role": "user", "content": words}])
        for _ in range(self.chance.randrange(3)):
            self._calls += 1
            result = " ".join(f"{self._calls}-{at}" for at in range(self.chance.randrange(30, 400)))
            self.said.append(result)
            self.listed += [
                {"role": "assistant", "content": None, "tool_calls": [call(self._calls)]},
                {"role": "tool", "tool_call_id": f"c{self._calls}", "content": result},
            ]
        self.listed.append({"role": "assistant", "content": f"answer {len(self.said)}"})


def publish(host: Host, session: Session, standings: ShownHistories) -> None:
    shown = standings.publish(internals(session).ledger, session.view(apart=True))
    assert shown is not None
    if host.chance.random() < 0.8:
        host.listed = with_users_joined(shown)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_published_or_not_the_history_stays_whole_and_nothing_is_rewound(seed: int):
    host, standings = Host(seed), ShownHistories()
    session = Lowwater(model="claude-haiku-4-5", store="memory:").session()
    for _ in range(25):
        host.turn()
        whole = standings.whole_of(host.listed)
        session.sync_messages(list(whole))
        assert len(branch_of(internals(session).ledger)) == len(whole)
        if host.chance.random() < 0.3:
            session.compress()
            publish(host, session, standings)
        if host.chance.random() < 0.1:
            standings = ShownHistories()
            standings.resume(internals(session).ledger, session.view(apart=True), session.history())
            host.listed = with_users_joined(session.view(apart=True))
    held = "\n".join(str(message.get("content")) for message in session.history())
    assert all(said in held for said in host.said)
    kinds = {type(entry).__name__ for entry in internals(session).ledger.entries}
    assert "Compacted" in kinds
    assert "Rewound" not in kinds


def test_undoing_the_last_words_across_a_compaction_keeps_the_compaction():
    host, standings = Host(3), ShownHistories()
    session = Lowwater(model="claude-haiku-4-5", store="memory:").session()
    for _ in range(12):
        host.turn()
        session.sync_messages(list(standings.whole_of(host.listed)))
    session.compress()
    shown = standings.publish(internals(session).ledger, session.view(apart=True))
    assert shown is not None
    kept = len(session.view())
    said = {"role": "user", "content": "no, something else"}
    session.sync_messages(list(standings.whole_of([*shown, said])))
    session.sync_messages(list(standings.whole_of([*shown, {"role": "user", "content": "this"}])))
    assert len(session.view()) == kept + 1
    assert session.view()[-1]["content"] == "this"
