"""A session as its client had it, beside what the engine plays; and what each configuration does."""

import msgspec
import pytest
from msgspec.structs import replace

from lowwater.core.messages import Message, Text
from lowwater.core.tokens.counting import count_preamble
from lowwater.errors import BadSetting
from lowwater.lab.replay.as_recorded import AS_RECORDED, client_compactions
from lowwater.lab.replay.course_replay import PolicyOutcome
from lowwater.lab.replay.live import CONFIGURATIONS
from lowwater.lab.replay.script import NEUTRAL, REPLACEMENT_KIND
from lowwater.lab.replay.session import ReplayOptions, ReplayTask, replay_session
from lowwater.logs.importers import recordings
from lowwater.logs.recording import RecordedMessage, Recording
from lowwater.session.factories import counter_for
from lowwater.session.library import Lowwater
from tests.lab.compacted_logs import COMPACT, READ, TESTS, USER, claude_log, codex_log
from tests.lab.replay_recordings import recording

SUMMARY = "The work so far: the parser was read and its tests were run, and nothing is left to be done. " * 5


def outcomes(made: Recording, *, model: str = "deepseek", **options) -> dict[str, PolicyOutcome]:
    asked = ReplayOptions(model=model, policies=("rent-or-buy", "never"), arms=(NEUTRAL,), **options)
    result = replay_session(ReplayTask(recording=made, options=asked))
    assert not result.skipped
    return {each.policy: each for each in result.outcomes if each.kind == "full"}


def compacted(made: Recording, summary: str, *, at: int) -> Recording:
    """Return a session whose client put a summary in place of everything before a message."""
    stands = Message(role="user", parts=(Text(text=summary),))
    new = RecordedMessage(message=stands, at=made.messages[at].at, kind=REPLACEMENT_KIND)
    return replace(made, messages=(*made.messages[:at], new, *made.messages[at:]))


@pytest.fixture(scope="module")
def whole() -> Recording:
    return recording(turns=40)


def test_without_compactions_a_session_costs_what_never_costs(whole):
    found = outcomes(whole)
    recorded, never = found[AS_RECORDED], found["never"]
    assert client_compactions(whole) == []
    assert never.cadence.events == 0
    assert (recorded.cost, recorded.rework, recorded.peak_view) == (never.cost, 0, never.peak_view)
    assert recorded.recall.uses == recorded.recall.in_view == never.recall.uses > 0


@pytest.mark.parametrize(
    ("summary", "counts"),
    [
        pytest.param(SUMMARY, True, id="its text was recorded"),
        pytest.param("Compacted.", False, id="only that there was one: its uses are left out"),
    ],
)
def test_after_a_summary_calls_are_smaller_and_uses_are_lost(whole, summary, counts):
    at = next(
        index
        for index, each in enumerate(whole.messages)
        if index > len(whole.messages) // 2 and each.message.role == "user"
    )
    made = compacted(whole, summary, at=at)
    (one,) = client_compactions(made)
    before, after = outcomes(whole)[AS_RECORDED], outcomes(made)[AS_RECORDED]
    assert (one.summary == summary) == counts
    assert (after.cadence.events, after.cadence.summaries, before.cadence.events) == (1, 1, 0)
    assert after.cadence.reclaimed > 0
    assert after.mean_view < before.mean_view
    assert 0 < after.summaries < after.cost
    assert after.recall.in_view < before.recall.in_view
    assert (after.recall.uses == before.recall.uses) == counts


@pytest.mark.parametrize("log", [claude_log, codex_log])
def test_the_summaries_of_clients_are_found(log, tmp_path):
    made = log([READ, TESTS, COMPACT, USER, READ, TESTS], tmp_path / "one.jsonl")
    (found,) = recordings([made])
    assert [each.summary for each in client_compactions(found)] == [""], "too short to be more than a note"


def test_what_the_engine_does_not_play_has_no_recorded_session_beside_it(whole):
    assert outcomes(whole, full=()) == {}


@pytest.mark.parametrize(
    ("name", "writers", "prefetches", "recall"),
    [
        ("shipped", ("own", "cheaper"), True, True),
        ("full", ("own", "cheaper"), False, True),
        ("own-model", ("own",), False, True),
        ("keyless", (), False, True),
        ("no-recall", (), False, False),
    ],
)
def test_a_configuration_says_who_writes_when_and_whether_the_model_recalls(
    name, writers, prefetches, recall
):
    found = CONFIGURATIONS[name]
    assert (found.writers, found.prefetches, found.offers_recall) == (writers, prefetches, recall)
    played = outcomes(recording(turns=120), model="anthropic-r10", configuration=name)
    assert played["rent-or-buy"].cadence.events > 0
    assert (played["rent-or-buy"].summaries > 0) == bool(writers)


def test_the_definitions_of_the_recall_tools_are_in_every_prompt_but_those_of_never():
    made, turns = recording(turns=5), 5
    keyless, bare = (outcomes(made, configuration=name) for name in ("keyless", "no-recall"))
    prompts = {
        policy: keyless[policy].cadence.prompt_and_summary_tokens
        - bare[policy].cadence.prompt_and_summary_tokens
        for policy in ("rent-or-buy", "never")
    }
    with Lowwater(store="memory:", model="deepseek") as library:
        tools = msgspec.json.encode(library.session("one").recall_tools().openai)
    counted = count_preamble(b"", tools, counter_for("deepseek"))
    assert prompts == {"rent-or-buy": pytest.approx(turns * counted, rel=0.05), "never": 0}


def test_an_unknown_configuration_is_refused_with_the_nearest():
    assert set(CONFIGURATIONS) == {"shipped", "full", "own-model", "keyless", "no-recall"}
    with pytest.raises(BadSetting, match="did you mean keyless"):
        ReplayOptions(configuration="keyles")
