"""Checkpoints, rewind and recall are readings of the ledger: any compaction can be undone, any original had back."""

import json
from typing import Any

import pytest

from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.testing.invariants import check_nothing_lost
from tests.generated import generate_session

MESSAGES: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=81, target_tokens=50_000).as_openai_chat()[:-1]
]
MORE = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And the invoice INV-4711?"}]


@pytest.fixture
def session() -> Session:
    session = Lowwater(model="model-nobody-knows", policy="runway").session()
    session.append(MESSAGES)
    return session


def test_there_is_a_checkpoint_before_each_compaction(session: Session) -> None:
    session.compress()
    session.append(MORE)
    session.checkpoint("lunch")
    names = [checkpoint.name for checkpoint in session.checkpoints()]
    assert names == ["before-compaction-1", "lunch"]
    assert session.checkpoints()[0].messages == len(MESSAGES)


def test_rewind_undoes_a_compaction_and_keeps_what_came_later(session: Session) -> None:
    session.compress()
    session.append(MORE)
    session.rewind("before-compaction-1")
    assert session.view() == [*MESSAGES, *MORE]
    check_nothing_lost(internals(session).ledger)


def test_rewind_goes_back_in_time_on_request(session: Session) -> None:
    session.compress()
    session.append(MORE)
    session.rewind("before-compaction-1", discard_later=True)
    assert session.view() == MESSAGES
    assert session.history() == [*MESSAGES, *MORE], "the ledger has it still"


def test_a_rewind_can_be_rewound(session: Session) -> None:
    session.compress()
    compacted = session.view()
    session.rewind("before-compaction-1")
    session.rewind("before-rewind-1")
    assert session.view() == compacted


def test_a_client_that_goes_another_way_is_followed(session: Session) -> None:
    session.compress()
    cut = next(at for at, message in enumerate(MESSAGES) if at > 9 and message["role"] == "user")
    other = [*MESSAGES[:cut], {"role": "user", "content": "No, something else."}]
    assert session.prepare(other).as_openai()["messages"] == other
    assert session.history() == [*MESSAGES, *other[cut:]], "the ledger has both ways"


def test_an_unknown_checkpoint_is_refused_with_those_there_are(session: Session) -> None:
    with pytest.raises(BadInput, match="there is no checkpoint 'x'; the newest are: none yet"):
        session.rewind("x")
    session.checkpoint("lunch")
    with pytest.raises(BadInput, match="lunch"):
        session.rewind("x")
    with pytest.raises(BadInput, match="already"):
        session.checkpoint("lunch")
    with pytest.raises(BadInput, match="must be text"):
        session.checkpoint(" ")


def test_recall_finds_by_handle_and_by_words(session: Session) -> None:
    session.append(MORE)
    session.compress()
    number = len(MESSAGES) + 2
    assert session.recall(f"lw:{number}")[0].text == MORE[1]["content"]
    assert session.recall("what about INV-4711")[0].handle == f"lw:{number}"
    assert session.recall("xyzzyplugh") == []
    with pytest.raises(BadInput, match=f"there is no message lw:{number + 1}"):
        session.recall(f"lw:{number + 1}")


def test_every_handle_in_a_view_leads_to_its_message(session: Session) -> None:
    session.prepare(offers_recall=True)
    session.compress()
    text = json.dumps(session.view(), ensure_ascii=False)
    handles = {
        part.split("]")[0].split(" ")[0] for part in text.split("recall ")[1:] if part.startswith("lw:")
    }
    for handle in handles:
        assert session.recall(handle)[0].handle == handle
