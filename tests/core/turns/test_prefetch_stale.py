"""A prefetched summary is stale as soon as anything inside its range changed, and only then."""

import pytest

from lowwater.core.view import Edited
from lowwater.session.internals import internals
from tests.core.turns.session_player import NEAR, Talk, blocks_of, running, text_block


@pytest.mark.parametrize("edited", [10, -1], ids=["inside", "behind"])
def test_it_is_stale_when_the_client_edits_a_message_inside_its_range_only(edited: int) -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    numbers = set(talk.model.requests[0].numbers)
    messages = talk.session.history()
    at = next(i for i in range(edited, len(messages)) if messages[i]["role"] == "user") if edited > 0 else -1
    messages[at] = {
        "role": messages[at]["role"],
        "content": [*blocks_of(messages[at]), text_block("But first rest.")],
    }
    assert (at + 1 in numbers) == (edited > 0)
    talk.session.prepare(messages)
    assert talk.session.prefetch_summary()
    assert talk.asked == (2 if edited > 0 else 1)


def test_it_is_stale_after_a_rewind_that_took_its_messages_away() -> None:
    talk = Talk().turns(30)
    talk.session.checkpoint("early")
    talk.turns(NEAR - 30)
    assert talk.session.prefetch_summary()
    talk.session.rewind("early", discard_later=True)
    assert not talk.session.prefetch_summary(), "what is left needs no summary"
    assert talk.session.compress() is not None
    assert talk.asked == 2


def test_it_is_stale_after_a_rewind_to_before_the_summary_that_it_updates() -> None:
    talk = Talk()
    talk.until_compacted(60)
    talk.until_parked()
    assert talk.model.requests[-1].previous
    asked = talk.asked
    talk.session.rewind("before-compaction-1")
    assert talk.session.compress() is not None
    assert talk.asked == asked + 1
    assert not talk.model.requests[-1].previous


def test_once_stale_it_is_gone_even_if_its_messages_come_back() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.prefetch_summary()
    talk.session.prepare([*talk.session.history()[:20], {"role": "user", "content": "Leave it."}])
    talk.session.rewind("before-rewind-1", discard_later=True)
    assert talk.session.prefetch_summary()
    assert [request.numbers for request in talk.model.requests] == 2 * [talk.model.requests[0].numbers]


def test_it_is_not_stale_after_an_elision_inside_its_range() -> None:
    talk = Talk(policy="runway", messages=running(40)).until_parked()
    numbers = talk.model.requests[0].numbers
    talk.until_compacted()
    (event,) = talk.sink.compactions
    assert event.mode == "prune"
    edited = {item.number for item in internals(talk.session).ledger.view.items if isinstance(item, Edited)}
    assert edited & set(numbers)
    assert talk.session.prefetch_summary()
    assert talk.asked == 1
