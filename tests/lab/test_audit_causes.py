"""Why a call read less from the cache than it could have, and what that cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.api_calls import Usage
from lowwater.lab.audit.calls import misses_of, shortfall
from tests.lab.audited_recordings import GPT, Talk


def last(talk: Talk):
    return misses_of(talk.calls())[-1]


def begun(model: str = "claude-opus-4-6", **more) -> Talk:
    return (
        Talk(model)
        .says()
        .call(prompt=30_000, read=16_000, **more)
        .tool("text", prompt=60_000, read=30_000, **more)
    )


def test_a_call_that_read_all_it_could_is_no_miss():
    assert last(begun().tool("text", prompt=70_000, read=60_000)) is None


def test_the_first_call_misses_what_no_other_session_left():
    miss = misses_of(begun().calls())[0]
    assert miss is not None
    assert (miss.cause, miss.tokens) == ("first", 14_000)


@pytest.mark.parametrize(
    ("talk", "cause"),
    [
        (begun().compacts().call(prompt=40_000, read=16_000), "compaction"),
        (begun().call(prompt=62_000, read=0, model="claude-sonnet-4-6"), "model_changed"),
        (begun().says().call(prompt=62_000, read=0, wait=400), "expired"),
        (begun().says().call(prompt=62_000, read=16_000), "start_changed"),
        (begun().says().call(prompt=62_000, read=0), "start_changed"),
        (begun().says().call(prompt=62_000, read=45_000), "prefix_edited"),
        (begun().tool("text", prompt=50_000, read=16_000), "prefix_edited"),
        (begun().tool("text", prompt=62_000, read=16_000), "evicted"),
        (begun().tool("text", prompt=62_000, read=16_000, role="user"), "evicted"),
        (begun(GPT).tool("text", prompt=62_000, read=59_520), "boundary"),
        (begun().tool("text", prompt=62_000, read=16_100, named="ToolSearch"), "start_changed"),
        (begun().tool("text", prompt=62_000, read=0, named="ToolSearch"), "start_changed"),
        (
            begun()
            .tool("text", prompt=62_000, read=60_000, named="ToolSearch")
            .tool("text", prompt=64_000, read=16_100, named="ToolSearch"),
            "evicted",
        ),
        (begun().tool("text", prompt=62_000, read=22_000), "start_changed"),
        (begun(GPT).tool("text", prompt=62_000, read=22_016), "evicted"),
    ],
    ids=[
        "the client compacted",
        "another model",
        "after the lifetime",
        "only the shared start is read when the user speaks",
        "nothing is read when the user speaks",
        "something in the middle changed when the user spoke",
        "the prompt shrank",
        "lost in the midst of work",
        "a result in a user's message is not the user speaking",
        "rounded to a step",
        "the model searched for tools, which changes their list",
        "the same where nothing is shared",
        "later searches change nothing",
        "a boundary inside the first prompt is found, and none behind it",
        "which says nothing where boundaries are everywhere",
    ],
)
def test_a_miss_has_a_cause(talk: Talk, cause: str):
    miss = last(talk)
    assert miss is not None
    assert miss.cause == cause


def test_what_was_written_for_an_hour_has_not_expired_after_ten_minutes():
    talk = begun(long=True).says().call(prompt=62_000, read=16_000, wait=600)
    assert last(talk).cause == "start_changed"
    talk = begun(long=True).says().call(prompt=62_000, read=16_000, wait=4_000)
    assert last(talk).cause == "expired"


def test_the_lifetime_counts_from_the_answer_before():
    talk = begun().says().call(prompt=62_000, read=0, wait=299)
    assert last(talk).cause == "start_changed"


def test_without_times_nothing_is_said_to_have_expired():
    usage = Usage(cache_read=0, cache_write=62_000)
    talk = begun().says()
    talk.now = 0.0
    assert last(talk.call(prompt=0, read=0, wait=0, usage=usage)).cause == "start_changed"


def test_a_session_that_never_used_a_cache_is_told_apart():
    talk = Talk(GPT).says().call(prompt=30_000, read=0).tool("text", prompt=40_000, read=0)
    assert [miss.cause for miss in misses_of(talk.calls()) if miss] == ["first", "uncached"]


def test_a_miss_costs_what_writing_costs_more_than_reading():
    # Opus 4.6: $5 a million, written at 1.25 of that for five minutes and twice for an hour, read at a tenth.
    assert last(begun().says().call(prompt=62_000, read=0, wait=400)).cost == 60_000 * (6_250 - 500)
    talk = begun(long=True).says().call(prompt=62_000, read=0, wait=4_000, long=True)
    assert last(talk).cost == 60_000 * (10_000 - 500)


def test_a_miss_of_a_model_without_a_price_has_no_cost():
    talk = begun("nobody-knows").says().call(prompt=62_000, read=0)
    assert last(talk).tokens == 60_000
    assert last(talk).cost is None


@given(st.lists(st.tuples(st.integers(1, 200_000), st.integers(0, 100), st.booleans()), max_size=12))
def test_causes_add_up_to_the_whole_shortfall(calls):
    talk = Talk()
    for prompt, percent, user in calls:
        (talk.says() if user else talk).call(prompt=prompt, read=prompt * percent // 100)
    usages = [call.usage for call in talk.calls() if call.usage]
    missing = sum(map(shortfall, [None, *usages], usages))
    assert sum(miss.tokens for miss in misses_of(talk.calls()) if miss) == missing
