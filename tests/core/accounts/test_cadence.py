"""The seven cadence metrics, by hand and over many sessions."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.accounts.cadence import cadence, turns_before_events
from lowwater.core.events import Phase
from lowwater.core.stored import Account
from tests.core.accounts.accounts import account, accounts, compaction, refused, skip, turn

LEAF = Phase(mechanism="leaf", removed=1)


def test_the_metrics_of_one_session_by_hand() -> None:
    found = cadence(
        [
            account(
                turn(1, read=900, write=100),
                turn(2, read=1_000, uncached=50),
                compaction(3, before=1_000, after=400, first_changed=7),
                turn(3, read=400),
                skip(4, "rent-below-price"),
                turn(4, read=500),
                turn(5, read=600),
                compaction(
                    6,
                    mode="summary",
                    before=900,
                    after=300,
                    first_changed=2,
                    summary_tokens=90,
                    summarizer="acme-1",
                ),
                skip(7, "rent-below-price"),
                turn(7, read=200),
                skip(8, "cooling-down"),
            )
        ]
    )
    assert (found.turns, found.events) == (6, 2)
    assert found.events_per_100_turns == 100 * 2 / 6
    assert found.turns_between_events == 3  # the first stands before turn 3 of 6, the second before turn 6
    assert found.summary_calls == 1
    assert found.reclaimed_per_event == 600
    assert found.prompt_and_summary_tokens == 1_000 + 1_050 + 400 + 500 + 600 + 200 + 90
    assert found.earliest_changed == 2
    assert found.prunes_per_summary == 1
    assert (found.prunes, found.summaries, found.mean_summary_tokens) == (1, 1, 90)
    assert found.last_mode == "summary"
    assert found.skips == {"rent-below-price": 2, "cooling-down": 1}


def test_what_stands_behind_the_first_change_is_rewritten() -> None:
    one, other = (replace(compaction(at), disturbed=300 * at) for at in (1, 2))
    assert cadence([account(one, turn(1), other)]).rewritten == 900


def test_nothing_has_no_means_and_no_ratios() -> None:
    found = cadence([])
    assert (found.events_per_100_turns, found.turns_between_events, found.reclaimed_per_event) == (None,) * 3
    assert (found.prunes_per_summary, found.earliest_changed, found.last_mode) == (None, None, "")


def test_the_time_from_one_session_to_the_next_is_no_interval() -> None:
    one = account(compaction(1), turn(1), turn(2), compaction(3), turn(3))
    other = account(turn(10), turn(11), turn(12), compaction(13))
    assert cadence([one, other]).turns_between_events == 2


def test_where_clocks_disagree_nothing_comes_before_what_was_kept_before_it() -> None:
    assert turns_before_events(account(turn(10), turn(5), turn(6), compaction(8), compaction(7))) == [0, 0]
    assert turns_before_events(account(turn(1), turn(2), compaction(3), compaction(1), turn(3))) == [2, 2]


def test_a_repaired_summary_is_one_call_and_a_failed_one_is_another() -> None:
    repaired = compaction(1, mode="summary", summarizer="acme-1", rejected=(refused("acme-1"),))
    failed_over = compaction(
        2, mode="summary", summarizer="mine", rejected=(refused("acme-1", said="timed out"),)
    )
    without_model = compaction(3, mode="summary", summarizer="extractive", rejected=(refused("extractive"),))
    given_up = skip(4, "not-smaller", refused("acme-1"))
    passes = compaction(5, mode="summary", summarizer="mine", phases=(LEAF, LEAF, LEAF))
    for event, calls in ((repaired, 1), (failed_over, 2), (without_model, 0), (given_up, 1), (passes, 3)):
        assert cadence([account(event)]).summary_calls == calls


def test_the_mean_length_is_that_of_a_summary_and_not_of_an_event() -> None:
    passes = compaction(5, mode="summary", summarizer="mine", phases=(LEAF, LEAF, LEAF), summary_tokens=300)
    assert cadence([account(passes)]).mean_summary_tokens == 100


@given(accounts())
def test_many_sessions_are_the_sum_of_each(many: list[Account]) -> None:
    each = [cadence([one]) for one in many]
    all_of_them = cadence(many)
    for name in (
        "sessions", "turns", "events", "summary_calls", "prompt_and_summary_tokens", "prunes", "summaries", "reclaimed"
    ):  # fmt: skip
        assert getattr(all_of_them, name) == sum(getattr(one, name) for one in each), name
    assert sum(all_of_them.skips.values()) == sum(sum(one.skips.values()) for one in each)
    earliest = [one.earliest_changed for one in each if one.earliest_changed is not None]
    assert all_of_them.earliest_changed == min(earliest, default=None)
    between = [one.turns_between_events for one in each if one.turns_between_events is not None]
    if between:
        assert all_of_them.turns_between_events is not None
        assert min(between) - 1e-9 <= all_of_them.turns_between_events <= max(between) + 1e-9
    assert all_of_them.events == all_of_them.prunes + all_of_them.summaries


@given(accounts(), st.randoms())
def test_the_order_of_sessions_does_not_matter_but_for_the_last_mode(many: list[Account], random) -> None:
    shuffled = random.sample(many, len(many))
    for name in (
        "events_per_100_turns",
        "turns_between_events",
        "reclaimed_per_event",
        "mean_summary_tokens",
    ):
        assert getattr(cadence(many), name) == getattr(cadence(shuffled), name)
