"""One session under all policies: bounded by the optimum, counted alike on the course and by the engine, recall measured."""

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.messages import Message
from lowwater.errors import BadSetting
from lowwater.lab.course import shown_window
from lowwater.lab.peers import DECLARED, PEERS
from lowwater.lab.replay.as_recorded import AS_RECORDED
from lowwater.lab.replay.course_replay import SessionResult
from lowwater.lab.replay.script import (
    ASSUMED,
    NEUTRAL,
    PESSIMISTIC,
    SHEETS,
    Arm,
    model_named,
    sheet_of,
)
from lowwater.lab.replay.session import (
    ENGINE_POLICIES,
    POLICY_NAMES,
    ReplayOptions,
    ReplayTask,
    replay_session,
)
from lowwater.logs.recording import NativeCompaction, RecordedMessage, Recording
from tests.lab.replay_recordings import recording

POLICIES = ("rent-or-buy", "never", "hermes-classic", "claude-code", "optimum")


def replayed(*, turns: int = 40, **options) -> SessionResult:
    asked = ReplayOptions(policies=POLICIES, full=("rent-or-buy", "never"), **options)
    return replay_session(ReplayTask(recording=recording(turns=turns), options=asked))


@pytest.fixture(scope="module")
def result() -> SessionResult:
    return replayed(turns=60)


def outcome(result: SessionResult, policy: str, kind: str = "course", arm: str = "neutral"):
    return next(each for each in result.outcomes if (each.policy, each.kind, each.arm) == (policy, kind, arm))


def test_every_policy_is_there_in_every_arm(result):
    assert {(each.policy, each.kind, each.arm) for each in result.outcomes} == {
        *((policy, "course", arm.name) for policy in POLICIES for arm in (NEUTRAL, PESSIMISTIC)),
        ("rent-or-buy", "full", "neutral"),
        ("never", "full", "neutral"),
        (AS_RECORDED, "full", "neutral"),
    }


def test_nothing_is_below_its_bound(result):
    for each in result.outcomes:
        bounds = result.bound(each.arm)
        assert bounds.optimum is not None
        assert each.total >= (bounds.optimum if each.is_bounded else bounds.relaxed)


def _compacting(before: int, *, trigger: str = "auto") -> Recording:
    """Return a session of a model with a window of a million whose client compacted at `before` tokens."""
    made = recording(turns=60, model="claude-opus-4-6")
    native = NativeCompaction(index=len(made.messages) // 2, trigger=trigger, before=before)
    return replace(made, compactions=(native,))


def test_claude_code_compacts_where_the_recording_shows_that_it_does():
    asked = ReplayOptions(policies=("claude-code", "never"), full=("never",), arms=(NEUTRAL,))
    listed = replay_session(ReplayTask(recording=_compacting(40_000, trigger="manual"), options=asked))
    shown = replay_session(ReplayTask(recording=_compacting(40_000), options=asked))
    assert not outcome(listed, "claude-code").events
    assert outcome(listed, "claude-code").cost == outcome(listed, "never").cost
    assert outcome(listed, "never").peak_view > 73_000
    first = outcome(shown, "claude-code").events[0]
    assert first.before >= 40_000
    assert first.because == ""
    for kind in ("course", "full"):
        assert outcome(shown, "never", kind).peak_view <= 73_000
    named = replay_session(
        ReplayTask(recording=_compacting(40_000), options=replace(asked, model="claude-opus-4-6"))
    )
    assert not outcome(named, "claude-code").events


@pytest.mark.parametrize(
    ("compactions", "prompts", "window"),
    [
        pytest.param([], [170_000], 1_000_000, id="none: the listed one"),
        pytest.param([("manual", 90_000)], [90_000], 1_000_000, id="by hand: the listed one"),
        pytest.param([("auto", None)], [170_000], 1_000_000, id="of unknown size: the listed one"),
        pytest.param([("auto", 167_000)], [166_500], 200_000, id="at the limit"),
        pytest.param([("auto", 178_000), ("auto", 167_000)], [166_000], 200_000, id="the first beyond it"),
        pytest.param([("auto", 132_000)], [167_000], 200_000, id="never below what was sent"),
        pytest.param([("auto", 990_000)], [980_000], 1_000_000, id="never above the listed one"),
    ],
)
def test_the_window_of_a_client_shows_in_where_it_compacts(compactions, prompts, window):
    natives = [NativeCompaction(index=1, trigger=trigger, before=before) for trigger, before in compactions]
    assert shown_window(natives, prompts, 1_000_000) == window


def test_the_optimum_is_its_own_bound_and_the_pessimistic_arm_costs_more(result):
    assert outcome(result, "optimum").total == result.bound("neutral").optimum
    assert outcome(result, "never", arm="pessimistic").cost > outcome(result, "never").cost


def test_the_course_and_the_engine_count_the_same_session(result):
    course, full = outcome(result, "never"), outcome(result, "never", "full")
    assert course.series is not None
    assert full.series is not None
    assert full.series.prompt[-1] == pytest.approx(course.series.prompt[-1], rel=0.03)
    assert full.cost == pytest.approx(course.cost, rel=0.05)


def test_series_have_a_number_for_each_call_and_add_up(result):
    for each in result.outcomes:
        if each.policy == AS_RECORDED:
            continue
        series = each.series
        assert series is not None
        columns = (getattr(series, name) for name in series.__struct_fields__)
        assert {len(column) for column in columns} == {result.calls}
        assert (sum(series.cost), sum(series.rework)) == (each.cost, each.rework)
        split = zip(series.read, series.written, strict=True)
        assert [read + written for read, written in split] == list(series.prompt)
        assert max(series.prompt) == each.peak_view


def test_each_call_has_its_time_since_the_first(result):
    assert len(result.times) == result.calls
    assert result.times[0] == 0.0
    assert list(result.times) == sorted(result.times)
    assert result.times[-1] > 0


def test_the_hidden_prompt_is_what_the_first_call_was_billed_for_beside_its_messages(result):
    never = outcome(result, "never")
    assert never.series is not None
    assert never.series.prompt[0] == pytest.approx(20_000, rel=0.01)
    assert 0 < result.fixed < 20_000


def test_recall_is_measured_by_the_engine(result):
    recall = outcome(result, "rent-or-buy", "full").recall
    assert recall.one_recall is not None
    assert recall.in_view + recall.one_recall + sum(recall.causes.values()) == recall.uses > 0


def test_the_same_session_gives_the_same_result():
    assert replayed() == replayed()


def test_the_engine_is_billed_in_full_for_calls_that_find_nothing_by_surprise():
    unlucky = Arm(name="unlucky", missed=0.5)
    asked = ReplayOptions(
        policies=("never",), full=("never",), arms=(NEUTRAL, unlucky), full_arms=("neutral", "unlucky")
    )
    result = replay_session(ReplayTask(recording=recording(turns=12), options=asked))
    kind, unkind = (outcome(result, "never", "full", arm).series for arm in ("neutral", "unlucky"))
    course = outcome(result, "never", "course", "unlucky").series
    assert kind is not None
    assert unkind is not None
    assert course is not None
    assert unkind.prompt == kind.prompt
    assert [read == 0 for read in unkind.read] == [read == 0 for read in course.read]
    assert 1 < sum(read == 0 for read in unkind.read) < 12
    assert sum(unkind.cost) > sum(kind.cost)


def test_a_session_that_cannot_be_replayed_says_why():
    result = replay_session(
        ReplayTask(recording=replace(recording(turns=3), messages=()), options=ReplayOptions())
    )
    assert "no call" in result.skipped
    assert result.outcomes == ()


@pytest.mark.parametrize("model", ["", "home-made-1"])
def test_a_session_without_a_priced_model_is_played_and_says_so(model):
    task = ReplayTask(
        recording=replace(recording(turns=3), model=model), options=ReplayOptions(arms=(NEUTRAL,))
    )
    result = replay_session(task)
    assert (result.skipped, result.model, result.assumed) == ("", ASSUMED, ("model",))
    assert any(outcome.kind == "full" for outcome in result.outcomes)


def test_a_message_without_content_stops_nothing():
    """Claude Code 2.1 writes attachments of hooks that said nothing."""
    whole = recording(turns=3)
    nothing = RecordedMessage(message=Message(role="user", parts=()), at=whole.messages[0].at)
    messages = (nothing, *whole.messages, replace(nothing, message=Message(role="assistant", parts=())))
    options = ReplayOptions(arms=(NEUTRAL,))
    result = replay_session(ReplayTask(recording=replace(whole, messages=messages), options=options))
    assert result.skipped == ""
    assert result.outcomes == replay_session(ReplayTask(recording=whole, options=options)).outcomes


def test_another_model_can_be_asked_for():
    assert replayed(model="deepseek", arms=(NEUTRAL,)).model == SHEETS["deepseek"]


def test_an_unknown_policy_is_refused_with_the_nearest():
    with pytest.raises(BadSetting, match="rent-or-buy"):
        ReplayOptions(policies=("rent-or-by",))


def test_every_policy_can_be_played_somehow():
    assert set(POLICY_NAMES) == {*DECLARED, *PEERS, *ENGINE_POLICIES, "optimum"}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        pytest.param("claude-opus-4-5", "claude-haiku-4-5", id="a fifth of the price"),
        pytest.param("deepseek-flash", None, id="none that is cheaper"),
    ],
)
def test_another_model_of_the_provider_may_write_summaries_if_it_is_cheaper(name, other):
    registry = load_registry()
    found = registry.cheaper(registry.find(name))
    assert (found.name if found else None) == other


@pytest.mark.parametrize(
    ("name", "read", "write", "ttl"),
    [
        pytest.param("anthropic-r10", 0.1, 1.25, 300, id="Anthropic, a tenth"),
        pytest.param("anthropic-r05", 0.05, 1.25, 300, id="Anthropic, a twentieth"),
        pytest.param("openai-30m", 0.1, 1.25, 1_800, id="OpenAI, writes for 30 minutes"),
        pytest.param("deepseek", 0.02, 1.0, 86_400, id="DeepSeek"),
    ],
)
def test_the_four_sheets_are_those_of_the_registry(name, read, write, ttl):
    sheet = sheet_of(model_named(name, load_registry()))
    assert (sheet.read / sheet.input, sheet.write / sheet.input, sheet.ttl) == (read, write, ttl)
