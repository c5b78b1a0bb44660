"""Peers on courses: each compacts when it says it does, and what it leaves is what it says."""

import pytest
from msgspec.structs import replace

from lowwater.lab.course import Course, CourseTurn, Sheet
from lowwater.lab.peers import PEERS, PlayedCourse, play_course

SHEET = Sheet(
    name="r10",
    input=1_000_000,
    read=100_000,
    write=1_250_000,
    output=5_000_000,
    other_input=200_000,
    other_output=1_000_000,
    ttl=300,
    window=200_000,
)
FIXED, TEXT, RESULTS = 20_000, 500, 2_500


def course(turns: int, *, results: int = RESULTS) -> Course:
    each = CourseTurn(text=TEXT, results=results, elided=results // 6, output=TEXT)
    return Course(name="even", fixed=FIXED, tail=20_000, turns=(each,) * turns, uses=())


def played(peer: str, turns: int = 120, **changes: int) -> PlayedCourse:
    """Play a peer on turns of 3,000 tokens, warm but for the first."""
    cold = [True] + [False] * (turns - 1)
    return play_course(course(turns), replace(SHEET, **changes), PEERS[peer], cold=cold, believed=cold)


@pytest.mark.parametrize("peer", PEERS)
def test_every_prompt_fits(peer):
    for window in (64_000, 200_000, 1_000_000):
        found = played(peer, window=window)
        assert found.fits
        assert max(call.prompt for call in found.calls) <= window - SHEET.reserved


@pytest.mark.parametrize("peer", PEERS)
def test_a_short_session_is_left_alone_but_by_what_counts_items(peer):
    events = played(peer, turns=10).events
    assert bool(events) == (peer == "openai-default")


@pytest.mark.parametrize(
    ("peer", "before"),
    [
        pytest.param("hermes-classic", 100_000, id="half of the window"),
        pytest.param("claude-code", 167_000, id="near the end, with its reserve"),
        pytest.param("langchain", 155_000, id="a hundred thousand by its own count of the messages"),
        pytest.param("openai-server", 180_000, id="where the window ends"),
    ],
)
def test_the_first_compaction_comes_at_the_trigger(peer, before):
    first = played(peer).events[0]
    assert before <= first.before < before + TEXT + RESULTS
    assert not first.forced


def test_hermes_classic_keeps_its_head_and_a_tail_of_a_tenth_of_the_window():
    found = played("hermes-classic")
    first = found.events[0]
    assert first.first_changed == 1
    middle = first.before - FIXED - 3_000 - 18_000
    assert first.summary_tokens == min(round(0.2 * middle), 10_000)
    assert first.after == FIXED + 3_000 + first.summary_tokens + 18_000


def test_hermes_runway_prunes_without_a_summary_if_that_is_enough():
    found = played("hermes-runway", window=400_000)
    assert found.events[0].mode == "prune"
    assert found.events[0].summaries == 0
    assert found.events[0].after <= 200_000 - 30_000


def test_hermes_runway_summarises_where_a_prune_leaves_too_little():
    first = played("hermes-runway", window=128_000).events[0]
    assert first.mode == "summary"


def test_lcm_takes_the_oldest_chunk_and_condenses_eight_summaries():
    found = played("lcm-leaf", turns=150, window=1_000_000)
    leaf = found.events[0]
    assert (leaf.summary_tokens, leaf.before - leaf.after) == (2_400, 21_000 - 2_400)
    assert max(event.summaries for event in found.events) == 2


def test_the_guards_put_passes_off_until_there_is_pressure():
    plain, guarded = (played(peer, window=400_000) for peer in ("lcm-leaf", "lcm-guarded"))
    assert guarded.events[0].turn > plain.events[0].turn
    assert guarded.events[0].before >= 0.8 * 0.75 * 400_000


def test_claude_code_leaves_a_summary_and_the_newest_turn():
    first = played("claude-code").events[0]
    assert first.after == FIXED + SHEET.summary + TEXT + RESULTS


def test_opencode_clears_old_results_in_batches_and_its_summary_reads_nothing():
    found = played("opencode", turns=250)
    assert found.events[0].mode == "prune"
    assert found.events[0].before - found.events[0].after > 20_000
    summary = next(event for event in found.events if event.mode == "summary")
    asked = found.calls[summary.turn].asked
    assert asked == SHEET.write * summary.before + SHEET.input * 400 + SHEET.output * SHEET.summary


def test_langchain_asks_no_model_unless_trimming_is_off():
    trimmed, untrimmed = played("langchain"), played("langchain-untrimmed")
    assert sum(event.summaries for event in trimmed.events) == 0
    assert sum(event.summaries for event in untrimmed.events) == len(untrimmed.events) > 0
    assert trimmed.events[0].after == FIXED + 20 + 10 * (TEXT + RESULTS)


def test_the_agents_sdk_compacts_about_as_often_as_measured():
    assert 17 <= len(played("openai-default", turns=53).events) <= 23


RESULT_SIZES = (1_900, 8_300, 3_200, 11_500, 1_500, 5_400, 3_900, 3_700)
TOLERANCE = 0.04


def measured_session() -> Course:
    """Return a session of the shape that peers were measured on: 53 requests, some 204,000 tokens, mostly tool results."""
    each = [
        CourseTurn(text=80, results=0 if index % 12 == 11 else RESULT_SIZES[index % 8] * 86 // 100, output=75)
        for index in range(53)
    ]
    return Course(name="measured", fixed=500, tail=20_000, turns=tuple(each), uses=())


@pytest.mark.parametrize(
    ("peer", "read", "cost", "breaks"),
    [
        pytest.param("langchain", 0.1, 0.80, 1, id="LangChain, defaults"),
        pytest.param("langchain-untrimmed", 0.1, 0.95, 1, id="LangChain, trim off"),
        pytest.param("langchain-untrimmed", 0.05, 1.11, 1, id="LangChain, trim off, r 0.05"),
        pytest.param("langchain-untrimmed", 0.025, 1.26, 1, id="LangChain, trim off, r 0.025"),
    ],
)
def test_a_model_costs_what_was_measured_of_its_peer(peer, read, cost, breaks):
    never, found = against_never(peer, read)
    assert found.spent / never.spent == pytest.approx(cost, abs=TOLERANCE)
    assert len(found.events) == breaks


def test_the_agents_sdks_requests_cost_what_was_measured_and_its_compactions_come_on_top():
    never, found = against_never("openai-default", 0.1)
    asked = sum(call.asked for call in found.calls) // 1_000
    assert (found.spent - asked) / never.spent == pytest.approx(0.46, abs=TOLERANCE)
    assert found.spent / never.spent > 0.7
    assert len(found.events) == pytest.approx(20, abs=3)


def against_never(peer: str, read: float) -> tuple[PlayedCourse, PlayedCourse]:
    session = measured_session()
    assert sum(turn.whole for turn in session.turns) == pytest.approx(204_000, rel=0.01)
    sheet = replace(SHEET, read=round(read * SHEET.input), window=400_000)
    cold = [True] + [False] * (len(session.turns) - 1)
    policies = (lambda _view: None, PEERS[peer])
    never, found = (play_course(session, sheet, policy, cold=cold, believed=cold) for policy in policies)
    return never, found
