"""A turn that is offered is kept when it is accepted and not before, whatever happened to the session meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from lowwater import Lowwater
from lowwater.core.stored import About
from lowwater.session.internals import internals
from lowwater.session.session import Session
from lowwater.session.turn_input import TurnInput
from lowwater.stores.memory import MemoryStore
from lowwater.stores.sqlite.store import SqliteStore

MODEL = "claude-opus-4-5"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def brought(*texts: str) -> TurnInput:
    return TurnInput(messages=[user(text) for text in texts])


def history(session: Session) -> list[str]:
    return [message["content"] for message in session.history()]


def test_what_is_not_accepted_was_never_there() -> None:
    store = MemoryStore()
    session = Lowwater(model=MODEL, store=store).session("s")
    internals(session).begin(About(source="test", title="a title"))
    offered = internals(session).offer_turn(brought("a"))
    assert (store.sessions(), session.history()) == ([], [])
    internals(session).accept_turn(offered, body=b"{}")
    (listed,) = store.sessions()
    assert (listed.messages, listed.about) == (1, About(source="test", title="a title"))


def test_the_second_of_two_turns_that_were_offered_together_is_kept_too() -> None:
    session = Lowwater(model=MODEL, store=MemoryStore()).session("s")
    offers = [internals(session).offer_turn(brought("a", text)) for text in ("left", "right")]
    for offered in offers:
        internals(session).accept_turn(offered, body=b"{}")
    assert history(session) == ["a", "left", "right"]
    assert [message["content"] for message in session.view()] == ["a", "right"]
    session.record({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "well"}]})
    assert session.view()[-1]["role"] == "assistant"


@pytest.mark.parametrize("anew", [False, True], ids=["begun", "new"])
def test_a_turn_is_kept_behind_what_another_process_wrote_meanwhile(tmp_path: Path, anew: bool) -> None:
    stores = [SqliteStore(tmp_path / "kept.db") for _ in range(2)]
    one, other = (Lowwater(model=MODEL, store=store).session("s") for store in stores)
    if not anew:
        one.sync_messages([user("a")])
        other.refresh()
    offered = internals(one).offer_turn(brought("a", "b"))
    other.sync_messages([user("a"), user("c")])
    internals(one).accept_turn(offered, body=b"{}")
    other.refresh()
    assert history(one) == history(other) == ["a", "c", "b"]
    for store in stores:
        store.close()


def test_a_session_that_leaves_another_has_its_beginning_and_nothing_else() -> None:
    store = MemoryStore()
    library = Lowwater(model=MODEL, store=store)
    parent = library.session("parent")
    parent.sync_messages([user("a"), user("b")])
    position = len(internals(parent).ledger.entries)
    parent.sync_messages([user("a"), user("b"), user("the number is 471100")])
    fork = library.session("fork")
    internals(fork).begin(About(parent="parent"), parent=parent, upto=position)
    assert [each.name for each in store.sessions()] == ["parent"], "not before something happens to it"
    internals(fork).accept_turn(internals(fork).offer_turn(brought("a", "b", "c")), body=b"{}")
    again = Lowwater(model=MODEL, store=store).session("fork")
    assert history(again) == ["a", "b", "c"]
    assert again.recall("number") == []
    assert [hit.session for hit in store.search("number", limit=9)] == ["parent"]
