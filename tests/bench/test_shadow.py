"""Shadow mode on sessions sent through real gateways: not a byte changes, decisions are the live ones, the bill is foreseen."""

from contextlib import ExitStack
from itertools import islice

import pytest
from msgspec.structs import replace

from bench.every_log import TRANSCRIPTS
from bench.shadow import (
    MOST_OFF,
    Player,
    Shown,
    against_rules,
    conversation_of,
    conversations,
    holds,
    tables,
)
from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from tests.generated import generate_session

MOST_OTHERWISE = 1 / 200
"""Of the decisions that are compared; 3 of 1,081 are known to differ (bench/README.md, "Shadow mode")."""
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


@pytest.mark.parametrize(
    ("pause", "usage", "is_against"),
    [
        (60, Usage(cache_read=50_000, cache_write=1_000), False),
        (60, Usage(cache_read=10_000, cache_write=41_000), True),
        (400, Usage(cache_read=10_000, cache_write=41_000), False),
        (400, Usage(cache_read=50_000, cache_write=1_000), True),
    ],
    ids=["kept", "lost within its lifetime", "over", "kept beyond it"],
)
def test_calls_at_which_the_cache_does_not_do_what_it_promises_are_known_by_recorded_usage_and_times(
    pause: float, usage: Usage, is_against: bool
) -> None:
    conversation = conversation_of(generate_session(seed=3, turns=50).as_recording(), "generated")
    assert conversation is not None
    first, second, *_ = conversation.calls
    before = replace(first, at=0.0, usage=Usage(cache_read=10_000, cache_write=40_000))
    call = replace(second, at=pause, usage=usage)
    model = load_registry().find("claude-opus-4-6")
    played = replace(conversation, model=model, format="anthropic", calls=(before, call))
    assert against_rules(played) == (frozenset({1}) if is_against else frozenset())
    shrunk = replace(call, raws=call.raws[1:])
    assert not against_rules(replace(played, calls=(before, shrunk))), "the client has changed its list"


@pytest.mark.full
@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded sessions on this machine")
def test_recorded_sessions_pass_unchanged_and_are_foreseen_and_decided_as_live() -> None:
    with ExitStack() as stack:
        player = Player(stack)
        shown: list[Shown] = [player.show(each) for each in islice(conversations(), SESSIONS)]
    assert [each.session for each in shown if each.requests_changed or each.answers_changed] == []
    assert sum(each.otherwise for each in shown) <= MOST_OTHERWISE * sum(each.compared for each in shown)
    by_rules = {each.session: each.bills.by_rules.off for each in shown}
    assert {session: off for session, off in by_rules.items() if off > MOST_OFF} == {}
    assert sum(each.compactions for each in shown) > 0
