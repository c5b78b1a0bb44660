"""What the cache rules say each call reads and writes."""

import pytest

from lowwater.core.api_calls import Usage
from lowwater.lab.audit.calls import Start, foresee, foreseen_bill
from tests.lab.audited_recordings import GPT, Talk, growing


def read_at(talk: Talk, at: int = -1) -> int:
    usage = foresee(talk.calls())[at]
    assert usage is not None
    return usage.cache_read


def begun(model: str = "claude-opus-4-6", **more) -> Talk:
    return (
        Talk(model)
        .says()
        .call(prompt=30_000, read=16_000, **more)
        .tool("text", prompt=60_000, read=0, **more)
    )


def test_a_prompt_reads_the_one_before_whatever_was_recorded():
    assert read_at(begun()) == 30_000


def test_the_first_call_reads_what_was_recorded():
    assert foresee(begun().calls())[0] == Usage(cache_read=16_000, cache_write=14_000)


def test_openai_reads_whole_steps():
    assert read_at(begun(GPT)) == 30_000 // 128 * 128


@pytest.mark.parametrize(
    ("talk", "read"),
    [
        (begun().says().call(prompt=62_000, read=9, wait=400), 0),
        (begun(long=True).says().call(prompt=62_000, read=9, wait=400), 60_000),
        (begun().compacts().call(prompt=40_000, read=9), 16_000),
        (begun().call(prompt=62_000, read=9, model="claude-sonnet-4-6"), 0),
        (begun().says().call(prompt=50_000, read=9), 30_000),
    ],
    ids=[
        "expired",
        "kept for an hour",
        "compacted: the fixed start is left",
        "another model",
        "shrunk: what stood before the user spoke is left",
    ],
)
def test_what_a_call_reads(talk: Talk, read: int):
    assert read_at(talk) == read


def test_back_on_the_first_model_its_prefix_is_still_there():
    talk = begun().call(prompt=62_000, read=0, model="claude-sonnet-4-6").call(prompt=63_000, read=0)
    assert read_at(talk) == 60_000


def test_writes_are_foreseen_at_the_lifetime_the_session_asks_for():
    usage = foresee(begun(long=True).calls())[-1]
    assert usage == Usage(cache_read=30_000, cache_write_long=30_000)


def test_a_session_that_goes_by_the_rules_is_foreseen_exactly():
    bill = foreseen_bill(growing(Talk(), 120, read=16_000).calls())
    assert bill is not None
    assert bill.error == 0
    assert bill.recorded > 0


def test_without_a_price_or_a_cache_nothing_is_foreseen():
    assert foreseen_bill(growing(Talk("nobody-knows"), 3).calls()) is None
    talk = Talk(GPT).says().call(prompt=30_000, read=0).call(prompt=31_000, read=0)
    assert foreseen_bill(talk.calls()) is None


def test_a_call_without_a_recorded_prompt_is_passed_over():
    talk = begun().call(prompt=0, read=0, usage=Usage(output=5)).tool("text", prompt=62_000, read=0)
    assert foresee(talk.calls())[2] is None
    assert read_at(talk) == 60_000


def test_a_start_takes_the_place_of_what_the_first_call_read():
    usages = foresee(begun().calls(), Start(fixed=10_000, read=0))
    assert usages[0] == Usage(cache_write=30_000)
    assert foresee(begun().calls(), Start(fixed=10_000, read=10_000))[0] == Usage(
        cache_read=10_000, cache_write=20_000
    )
    resumed = foresee(begun().calls(), Start(fixed=10_000, read=99_000))[0]
    assert resumed is not None
    assert resumed.cache_read == 30_000


def test_a_compaction_leaves_the_fixed_start_though_the_first_call_did_not_read_it():
    calls = begun().compacts().call(prompt=40_000, read=9).calls()
    assert [usage and usage.cache_read for usage in foresee(calls, Start(fixed=10_000, read=0))] == [
        0,
        30_000,
        10_000,
    ]


@pytest.mark.parametrize(("long", "field"), [(False, "cache_write"), (True, "cache_write_long")])
def test_inside_of_a_turn_a_little_is_written_anew(long: bool, field: str):
    talk = begun(long=long).tool("text", prompt=61_000, read=0, long=long)
    talk.says().call(prompt=62_000, read=0, long=long)
    usages = foresee(talk.calls(), Start(fixed=10_000, read=0, slip=0.01))
    assert usages[2] == Usage(cache_read=59_500, **{field: 1_500})
    assert usages[3] == Usage(cache_read=61_000, **{field: 1_000}), (
        "where the user speaks it is all or nothing"
    )


def test_the_first_search_for_tools_leaves_only_the_fixed_start():
    talk = begun().tool("text", prompt=62_000, read=9, named="ToolSearch")
    assert read_at(talk) == 16_000
    assert read_at(talk.tool("text", prompt=64_000, read=9, named="ToolSearch")) == 62_000
