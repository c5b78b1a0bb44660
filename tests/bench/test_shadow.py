"""Shadow mode on sessions sent through real gateways: not a byte changes, decisions are the live ones, the bill is foreseen."""

from contextlib import ExitStack
from itertools import islice

import pytest

from bench.every_log import TRANSCRIPTS
from bench.shadow import MOST_OFF, Player, Shown, conversation_of, conversations, holds, tables
from tests.generated import generate_session

pytestmark = pytest.mark.moves_prefix(reason="rent-or-buy compacts")
SESSIONS = 40
"""Of the recorded ones, drawn by hash; `python -m bench.shadow` plays all."""


def test_a_generated_session_passes_unchanged_and_is_decided_as_live() -> None:
    conversation = conversation_of(generate_session(seed=3, turns=50).as_recording(), "generated")
    assert conversation is not None
    with ExitStack() as stack:
        shown = Player(stack).show(conversation)
    assert (shown.requests_changed, shown.answers_changed, shown.otherwise) == (0, 0, 0)
    assert 0 < shown.compared <= shown.calls
    assert holds([shown])
    assert any(line.startswith("| all | 1 |") for line in tables([shown]))


@pytest.mark.full
@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded sessions on this machine")
def test_recorded_sessions_pass_unchanged_and_are_foreseen_and_decided_as_live() -> None:
    with ExitStack() as stack:
        player = Player(stack)
        shown: list[Shown] = [player.show(each) for each in islice(conversations(), SESSIONS)]
    assert [each.session for each in shown if each.requests_changed or each.answers_changed] == []
    assert [each.session for each in shown if each.otherwise] == []
    assert {each.session: each.bills.off for each in shown if each.bills.off > MOST_OFF} == {}
    assert sum(each.compactions for each in shown) > 0
