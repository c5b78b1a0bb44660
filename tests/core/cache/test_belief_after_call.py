"""What is believed after a call, and how reported usage corrects it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import MAX_BOUNDARIES, Belief, BeliefError, after_call, expected_usage
from tests.core.cache.layouts import layout_of

REGISTRY = load_registry()
CLAUDE = REGISTRY.find("claude-opus-5-5")
OPENAI_OLD = REGISTRY.find("gpt-5")
DEEPSEEK = REGISTRY.find("deepseek-flash")

FIRST = layout_of([5_000, 3_000], marks={0: "short", 1: "short"})
SECOND = layout_of([5_000, 3_000, 400], marks={0: "short", 2: "short"})
THIRD = layout_of([5_000, 3_000, 400, 60], marks={0: "short", 3: "short"})
EDITED = layout_of([5_000, 70, 400], names=["0", "edited", "2"], marks={0: "short", 2: "short"})
WARM = after_call(Belief(), FIRST, CLAUDE, 0).belief


def test_belief_and_outcome_stand_side_by_side():
    reported = Usage(cache_read=5_000, cache_write=3_400, output=9)
    assert after_call(WARM, SECOND, CLAUDE, 1, reported=reported).error == BeliefError(
        expected_read=8_000, expected_write=400, reported_read=5_000, reported_write=3_400
    )


def test_the_error_is_the_difference_of_the_reads():
    error = after_call(WARM, SECOND, CLAUDE, 1, reported=Usage(cache_read=5_000, cache_write=3_400)).error
    assert error.tokens == 3_000
    assert after_call(WARM, SECOND, CLAUDE, 1).error.tokens == 0


@pytest.mark.parametrize(
    "reported",
    [
        None,
        Usage(cache_read=8_000, cache_write=400),
        Usage(cache_write=8_400),
        Usage(cache_read=5_000, cache_write=3_400),
    ],
    ids=["nothing reported", "as expected", "all gone", "half gone"],
)
def test_a_written_prefix_is_warm_at_the_next_call_whatever_was_lost(reported: Usage | None):
    belief = after_call(WARM, SECOND, CLAUDE, 1, reported=reported).belief
    assert expected_usage(belief, THIRD, CLAUDE, 2) == Usage(cache_read=8_400, cache_write=60)


@pytest.mark.parametrize("off", [-1, 0, 1])
@pytest.mark.parametrize("lost", [False, True], ids=["all that was believed", "less than was believed"])
def test_a_read_that_ends_within_rounding_of_a_boundary_ended_there(off: int, lost: bool):
    """Sizes are rounded, so that a provider may count a token more or less up to the end of a block."""
    longer = layout_of([5_000, 3_000, 400], marks={0: "short", 1: "short", 2: "short"})
    before = after_call(WARM, longer, CLAUDE, 1).belief if lost else WARM
    assert before.boundaries[-1].tokens == (8_400 if lost else 8_000)
    call = layout_of([5_000, 3_000, 400, 60], marks={0: "short", 3: "short"})
    reported = Usage(cache_read=8_000 + off, cache_write=460 - off)
    belief = after_call(before, call, CLAUDE, 2, reported=reported).belief
    edited = layout_of([5_000, 3_000, 9], names=["0", "1", "edited"], marks={0: "short", 2: "short"})
    assert expected_usage(belief, edited, CLAUDE, 3).cache_read == 8_000


def test_a_read_of_nothing_means_that_everything_older_is_gone():
    unmarked_start = layout_of([5_000, 3_000, 400], marks={2: "short"})
    gone = after_call(WARM, unmarked_start, CLAUDE, 1, reported=Usage(cache_write=8_400)).belief
    kept = after_call(
        WARM, unmarked_start, CLAUDE, 1, reported=Usage(cache_read=8_000, cache_write=400)
    ).belief
    assert expected_usage(gone, EDITED, CLAUDE, 2).cache_read == 0
    assert expected_usage(kept, EDITED, CLAUDE, 2).cache_read == 5_000


def test_what_lies_on_another_way_is_gone_with_the_rest():
    both = after_call(WARM, EDITED, CLAUDE, 1).belief
    assert expected_usage(both, SECOND, CLAUDE, 2).cache_read == 8_000
    missed = layout_of([5_000, 70, 400, 9], names=["0", "edited", "2", "3"], marks={3: "short"})
    gone = after_call(both, missed, CLAUDE, 2, reported=Usage(cache_write=5_479)).belief
    assert expected_usage(gone, SECOND, CLAUDE, 3).cache_read == 0


def test_what_was_stored_for_an_hour_stays_so_when_read_by_a_short_mark():
    hour = after_call(Belief(), layout_of([5_000], marks={0: "long"}), CLAUDE, 0).belief
    read = after_call(hour, layout_of([5_000, 9], marks={0: "short"}), CLAUDE, 10).belief
    assert expected_usage(read, SECOND, CLAUDE, 3_610).cache_read == 5_000
    assert expected_usage(read, SECOND, CLAUDE, 3_611).cache_read == 0


def test_a_mark_for_an_hour_on_what_was_stored_for_minutes_buys_nothing():
    """It is read and not written, so nobody paid for an hour."""
    short = after_call(Belief(), layout_of([5_000], marks={0: "short"}), CLAUDE, 0).belief
    marked = after_call(short, layout_of([5_000], marks={0: "long"}), CLAUDE, 100).belief
    layout = layout_of([5_000, 10], marks={1: "short"})
    assert expected_usage(marked, layout, CLAUDE, 399).cache_read == 5_000
    assert expected_usage(marked, layout, CLAUDE, 401).cache_read == 0


def test_a_life_that_hits_do_not_prolong_ends_on_time():
    model = replace(CLAUDE, cache=replace(CLAUDE.cache, refreshed_by_hit=False))
    belief = after_call(WARM, FIRST, model, 200).belief
    assert expected_usage(belief, SECOND, model, 300).cache_read == 8_000
    assert expected_usage(belief, SECOND, model, 301).cache_read == 0


def test_a_smaller_read_drops_the_boundaries_above_it():
    unmarked = layout_of([5_000, 3_000, 400], marks={2: "short"})
    belief = after_call(WARM, unmarked, CLAUDE, 1, reported=Usage(cache_read=5_000, cache_write=3_400)).belief
    assert {boundary.tokens for boundary in belief.boundaries} == {5_000, 8_400}


def test_a_larger_read_is_believed():
    cold = layout_of([5_000, 3_000, 400], marks={2: "short"})
    assert expected_usage(WARM, cold, CLAUDE, 900).cache_read == 0
    told = after_call(WARM, cold, CLAUDE, 900, reported=Usage(cache_read=5_000, cache_write=3_400))
    assert told.error.expected_read == 0
    assert expected_usage(told.belief, EDITED, CLAUDE, 901).cache_read == 5_000


def test_nothing_is_believed_written_if_the_provider_says_so():
    belief = after_call(Belief(), FIRST, CLAUDE, 0, reported=Usage(uncached=8_000)).belief
    assert belief == Belief()


def test_a_cold_reading_means_that_the_cache_was_just_written():
    belief = after_call(WARM, SECOND, CLAUDE, 3_000, reported=Usage(cache_write=8_400)).belief
    assert expected_usage(belief, THIRD, CLAUDE, 3_200).cache_read == 8_400


def test_counts_that_differ_from_the_providers_do_not_look_like_a_miss():
    # The provider counts 2 % more, unevenly: it read 8,100 of 8,568, which is 7,941 of our 8,400.
    unmarked = layout_of([5_000, 3_000, 400], marks={2: "short"})
    belief = after_call(WARM, unmarked, CLAUDE, 1, reported=Usage(cache_read=8_100, cache_write=468)).belief
    assert {boundary.tokens for boundary in belief.boundaries} == {5_000, 8_000, 8_400}
    assert {boundary.used for boundary in belief.boundaries if boundary.tokens >= 8_000} == {1.0}


@pytest.mark.parametrize(
    ("reason", "read"),
    [("tools_changed", 0), ("system_changed", 0), ("unavailable", 5_000), ("", 5_000)],
)
def test_a_reason_that_denies_the_start_of_the_prompt_drops_everything(reason: str, read: int):
    unmarked = layout_of([5_000, 3_000, 400], marks={2: "short"})
    belief = after_call(WARM, unmarked, CLAUDE, 1, miss_reason=reason).belief
    assert (8_000 in {boundary.tokens for boundary in belief.boundaries}) == (read > 0)
    assert expected_usage(belief, EDITED, CLAUDE, 2).cache_read == read


def test_what_is_read_lives_on_with_all_on_the_way_and_the_rest_expires():
    belief = after_call(WARM, EDITED, CLAUDE, 0).belief
    for turn in range(1, 5):
        belief = after_call(
            belief, layout_of([5_000, 3_000, 400], marks={2: "short"}), CLAUDE, turn * 200
        ).belief
    assert {boundary.tokens for boundary in belief.boundaries} == {5_000, 8_000, 8_400}


def test_a_long_session_keeps_a_bounded_belief():
    belief, sizes = Belief(), [5_000]
    for turn in range(400):
        sizes += [90, 10]
        grown = layout_of(sizes)
        belief = after_call(
            belief, layout_of(sizes[:-1]), DEEPSEEK, turn, output_key=grown.blocks[-1].key
        ).belief
    assert 200 < len(belief.boundaries) <= MAX_BOUNDARIES
    cut = layout_of([*sizes[:300], 7], names=[*map(str, range(300)), "edited"])
    # Thinned evenly: the boundary found lies within a few turns of the cut.
    assert expected_usage(belief, cut, DEEPSEEK, 400).cache_read >= cut.ends[299] - 400


def test_a_path_of_many_blocks_loses_less_than_a_percent_at_any_cut():
    sizes = [100] * 2_000
    belief = after_call(Belief(), layout_of(sizes), OPENAI_OLD, 0).belief
    assert len(belief.boundaries) <= MAX_BOUNDARIES
    for cut in range(50, 2_000, 37):
        names = [*map(str, range(cut)), "edited"]
        read = expected_usage(belief, layout_of([*sizes[:cut], 5_000], names=names), OPENAI_OLD, 1).cache_read
        assert cut * 100 - 2_000 <= read <= cut * 100


def test_a_cut_at_a_mark_is_found_exactly_in_a_path_of_many_blocks():
    sizes, cut = [64] * 3_001, 1_240
    belief = after_call(Belief(), layout_of(sizes, marks={cut: "short"}), OPENAI_OLD, 0).belief
    names = [*map(str, range(cut + 1)), "edited"]
    edited = layout_of([*sizes[: cut + 1], 5_000], names=names)
    assert expected_usage(belief, edited, OPENAI_OLD, 1).cache_read == (cut + 1) * 64 // 128 * 128


def test_a_provider_that_never_reads_is_trusted_less_and_less_until_it_does():
    belief, layout, expected = Belief(), layout_of([8_000]), []
    for turn in range(6):
        told = after_call(belief, layout, OPENAI_OLD, turn, reported=Usage(uncached=8_000))
        belief = told.belief
        expected.append(told.error.expected_read)
    assert expected == [0, 7_936, 7_936, 7_936, 3_968, 1_984]
    belief = after_call(belief, layout, OPENAI_OLD, 6, reported=Usage(cache_read=7_936, uncached=64)).belief
    assert expected_usage(belief, layout, OPENAI_OLD, 7).cache_read == 7_936


@given(
    name=st.sampled_from([model.name for model in REGISTRY.models]),
    calls=st.lists(
        st.tuples(
            st.lists(st.integers(0, 5_000), max_size=12),
            st.sets(st.integers(0, 11), max_size=6),
            st.sampled_from(["", "short", "long"]),
            st.none() | st.tuples(*[st.integers(0, 60_000)] * 4),
            st.sampled_from([0.0, 30.0, 4_000.0, 90_000.0]),
        ),
        max_size=6,
    ),
)
def test_any_report_of_any_call_leaves_a_belief_that_bills_the_whole_prompt(name: str, calls: list[Any]):
    model, belief, at = REGISTRY.find(name), Belief(), 0.0
    for sizes, marked, automatic, figures, gap in calls:
        at += gap
        layout = layout_of(sizes, marks=dict.fromkeys(marked, "long"), automatic=automatic)
        expected = expected_usage(belief, layout, model, at)
        assert expected.prompt == layout.total
        assert (
            min(expected.uncached, expected.cache_read, expected.cache_write, expected.cache_write_long) >= 0
        )
        reported = None
        if figures is not None:
            uncached, read, write, long = figures
            reported = Usage(uncached=uncached, cache_read=read, cache_write=write, cache_write_long=long)
        belief = after_call(belief, layout, model, at, reported=reported).belief
        assert (
            len({boundary.key for boundary in belief.boundaries}) == len(belief.boundaries) <= MAX_BOUNDARIES
        )
        assert list(belief.boundaries) == sorted(belief.boundaries, key=lambda held: (held.used, held.tokens))


def test_a_belief_survives_the_store():
    belief = after_call(WARM, SECOND, CLAUDE, 1.5).belief
    assert msgspec.json.decode(msgspec.json.encode(belief), type=Belief) == belief
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(belief), type=Belief) == belief
