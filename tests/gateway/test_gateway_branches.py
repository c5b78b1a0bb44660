"""Branches of one conversation that run at the same time under one session's name: each keeps its own prefix."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowwater.core.events import Compaction
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through, calls_a_tool
from tests.gateway.request_prefixes import moves
from tests.gateway.test_gateway_sessions import USER, ask, numbered

LINES = 30_000
"""Of each result: a few of them fill the window."""
SIDES = ("left", "right")


def worked(through: Through, messages: list[Any], said: str) -> list[Any]:
    """Return a list after one more turn under the name that all branches share."""
    body = {"model": MODEL, "max_tokens": 1_000, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    answer = through.post(body | {"messages": messages}, x_session_id="one")
    assert answer.status_code == 200, answer.text
    content = answer.json()["content"]
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": said * LINES}
    return [*messages, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]


def of_side(through: Through, side: str) -> list[Seen]:
    """Return the requests of one branch that were made once it had left the other."""
    return [seen for seen in through.provider.requests if f"{side} begins".encode() in seen.raw]


def compactions(through: Through) -> int:
    """Return how many compactions all sessions had."""
    return sum(
        isinstance(event, Compaction) for account in through.store.accounts() for event in account.events
    )


def branched(replicas: list[Through], trunk: list[Any]) -> None:
    """Go on from a list in two branches for six turns each, turn by turn, each at whichever replica comes next."""
    lists = {
        side: [
            *trunk[:-1],
            {**trunk[-1], "content": [*trunk[-1]["content"], {"type": "text", "text": f"{side} begins"}]},
        ]
        for side in SIDES
    }
    for turn in range(6):
        for at, side in enumerate(SIDES):
            through = replicas[(turn + at) % len(replicas)]
            lists[side] = worked(through, lists[side], f"{side} {turn}\n")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[SqliteStore]]:
    """Open one file twice, as two replicas do."""
    opened = [SqliteStore(tmp_path / "lowwater.db") for _ in range(2)]
    yield opened
    for store in opened:
        store.close()


@pytest.mark.parametrize("replicas", [1, 2])
def test_interleaved_branches_under_one_name_keep_their_prefixes(
    stores: list[SqliteStore], start: Starting, replicas: int
) -> None:
    first = start(calls_a_tool, store=stores[0])
    others = [start(provider=first.provider, store=store) for store in stores[1:replicas]]
    trunk = worked(first, [{"role": "user", "content": "Find the defect."}], "line\n")
    branched([first, *others], trunk)
    assert len(first.store.sessions()) == len(SIDES)
    assert [len(of_side(first, side)) for side in SIDES] == [6, 6]
    assert [moves(of_side(first, side)) for side in SIDES] == [0, 0]
    assert compactions(first) > 0, "a branch that only grows keeps its prefix anyway"
    assert first.provider.refusals == ()


def test_a_client_that_goes_back_twice_stays_in_its_session(start: Starting) -> None:
    through = start(numbered)
    messages: list[Any] = [USER]
    for turn in range(3):
        messages += [ask(through, messages, x_session_id="a"), {"role": "user", "content": f"more {turn}"}]
    for upto, said in ((4, "instead"), (2, "or rather"), (2, "or this")):
        messages = [*messages[:upto], {"role": "user", "content": said}]
        messages.append(ask(through, messages, x_session_id="a"))
    ask(through, [*messages, {"role": "user", "content": "on"}], x_session_id="a")
    assert len(through.store.sessions()) == 1


def test_a_list_that_was_taken_back_and_goes_on_after_all_is_a_fork(start: Starting) -> None:
    through = start(lambda seen: Say(text=f"after {seen.body['messages'][-1]['content']}"))
    trunk: list[Any] = [USER]
    trunk.append(ask(through, trunk, x_session_id="a"))
    old = [*trunk, {"role": "user", "content": "left"}]
    old.append(ask(through, old, x_session_id="a"))
    new = [*trunk, {"role": "user", "content": "right"}]
    new.append(ask(through, new, x_session_id="a"))
    ask(through, [*old, {"role": "user", "content": "left again"}], x_session_id="a")
    ask(through, [*new, {"role": "user", "content": "right again"}], x_session_id="a")
    ask(through, [*old, {"role": "user", "content": "left again"}], x_session_id="a")
    (fork,) = [each for each in through.store.sessions() if each.about.parent]
    assert fork.turns == 2
    assert len(through.store.sessions()) == 2
