"""One recorded session audited: figures by day and model, compactions priced, other schedules estimated."""

from typing import Any

import pytest

from lowwater.core.api_calls import Usage
from lowwater.lab.audit.calls import audited_calls
from lowwater.lab.audit.session import SAVINGS_TAIL, audit_session
from lowwater.lab.audit.sizes import natives_of, sizes_of
from lowwater.logs.recording import BrokenLine
from tests.lab.audited_recordings import GPT, NOON, OPUS, PRICING, Talk, growing, utc_day

DAY = 86_400


def test_figures_are_told_by_day_and_model():
    talk = Talk().says().call(prompt=30_000, read=10_000, output=100)
    talk.call(prompt=31_000, read=30_000, wait=DAY).call(
        prompt=5_000, read=0, model="claude-haiku-4-5-20251001"
    )
    rows = talk.audited().rows
    assert [(row.day, row.model, row.figures.calls) for row in rows] == [
        ("2026-02-09", "claude-opus-4-6", 1),
        ("2026-02-10", "claude-haiku-4-5", 1),
        ("2026-02-10", "claude-opus-4-6", 1),
    ]
    first = rows[0].figures
    assert (first.prompt, first.cache_read, first.written, first.output) == (30_000, 10_000, 20_000, 100)
    assert first.hit_share == pytest.approx(1 / 3)


def test_what_each_prompt_held_adds_up_to_it_by_kind():
    talk = Talk().says("Make the tests pass. " * 200).call(prompt=20_000, read=0)
    talk.tool("line of text\n" * 4_000, prompt=33_000, read=20_000)
    talk.compacts().tool("word " * 100, prompt=21_000, read=10_000)
    columns = talk.audited().calls
    assert columns is not None
    prompts = [sum(each) for each in zip(columns.read, columns.written, columns.uncached, strict=True)]
    held = columns.held
    assert [each.start + each.user + each.answers + each.results + each.summaries for each in held] == prompts
    assert held[1].results > 10_000 > held[0].results == 0
    assert held[2].results < 1_000
    assert held[2].summaries > 0 == held[1].summaries
    assert min(each.start for each in held) > 5_000
    assert held[0].user > 500


def test_dollars_are_list_prices_and_add_up_to_where_they_went():
    row = Talk().says().call(prompt=30_000, read=10_000, output=100).audited().rows[0]
    assert row.figures.cost == 10_000 * 500 + 20_000 * 6_250 + 100 * 25_000
    spent = row.spending
    assert spent.reads + spent.writes + spent.uncached + spent.output == row.figures.cost


def test_spellings_of_a_model_are_one_model():
    talk = Talk().says().call(prompt=9_000, read=0, model="anthropic/claude-opus-4.6")
    talk.call(prompt=9_500, read=9_000, model="claude-opus-4-6-20260205")
    assert [row.model for row in talk.audited().rows] == ["claude-opus-4-6"]


def test_an_unknown_price_is_unknown_and_never_nothing():
    figures = growing(Talk("nobody-knows"), 3).audited().rows[0].figures
    assert figures.cost is None
    assert figures.unpriced == 3
    assert figures.prompt > 0


def test_a_call_whose_prompt_was_not_recorded_is_counted_and_not_priced():
    talk = Talk().says().call(prompt=0, read=0, usage=Usage(output=7)).call(prompt=0, read=0, usage=None)
    figures = talk.audited().rows[0].figures
    assert (figures.calls, figures.unpriced, figures.output, figures.cost) == (2, 2, 7, None)


def test_what_was_billed_beside_a_call_is_counted():
    talk = Talk().says().call(prompt=30_000, read=0, others=(Usage(cache_read=1_000, output=10),))
    row = talk.audited().rows[0]
    assert (row.figures.calls, row.figures.prompt, row.figures.output) == (1, 31_000, 10)
    assert row.figures.cost == 30_000 * 6_250 + 1_000 * 500 + 10 * 25_000
    assert row.spending.output == 10 * 25_000
    assert row.missed["first"].tokens == 30_000


def test_a_call_that_was_not_billed_at_list_price_has_none():
    talk = Talk().says().call(prompt=30_000, read=0, list_price=False)
    row = talk.audited().rows[0]
    assert (row.figures.cost, row.figures.unpriced) == (None, 1)
    assert row.missed["first"].cost is None


@pytest.mark.parametrize(
    ("model", "cost"),
    [("claude-haiku-4-5", 900_000 * 100 + 10_000 * 1_250), (GPT, None)],
    ids=["one price for any size", "a cliff"],
)
def test_a_session_of_which_only_the_sum_was_recorded_is_priced_where_sizes_do_not_matter(model, cost):
    talk = Talk(model).says().call(prompt=0, read=0, usage=None).call(prompt=0, read=0, usage=None)
    row = talk.audited(usage=Usage(cache_read=900_000, cache_write=10_000)).rows[0]
    assert (row.figures.calls, row.figures.prompt) == (2, 910_000)
    assert row.figures.cost == cost
    assert row.figures.unpriced == (2 if cost is None else 0)


def test_a_session_without_calls_has_no_rows():
    audited = Talk().says().audited(broken=(BrokenLine(place="a:1", why="cut off"),))
    assert audited.rows == ()
    assert (audited.broken, audited.broken_at) == (1, ("a:1",))
    assert audited.saving is None


def test_calls_that_another_file_told_are_not_counted_again():
    talk = growing(Talk(), 4)
    recording = talk.recording()
    told = {key for call in talk.calls()[:3] for key in call.keys}
    calls = audited_calls(recording, PRICING, told)
    audited = audit_session(recording, calls, day_of=utc_day)
    assert audited.copied == 3
    assert audited.rows[0].figures.calls == 1
    assert audited.saving is None, "that is told with the first"
    assert audited.rows[0].missed == {}, "the call before it is known, so that it is not a first one"


def compacted(*, served: int = 20, wait: float = 10.0) -> Talk:
    talk = growing(Talk(), 60, read=16_000).compacts().call(prompt=40_000, read=16_000, wait=wait)
    for at in range(served - 1):
        talk.tool("text", prompt=41_000 + 1_000 * at, read=40_000 + 1_000 * at)
    return talk


def test_the_clients_compaction_is_priced():
    (native,) = compacted().audited().natives
    assert (native.trigger, native.call, native.served) == ("auto", 60, 20)
    assert (native.before, native.after) == (148_000, 40_000)
    assert native.saved == 20 * 108_000 * 500
    assert native.rewrite_cost == 24_000 * (6_250 - 500)
    assert native.summary_cost is not None
    assert native.summary_cost > 148_000 * 500
    assert native.net == native.saved - native.rewrite_cost - native.summary_cost


def test_a_compaction_on_a_cold_cache_rewrites_nothing_that_was_not_lost_anyway():
    (native,) = compacted(wait=400).audited().natives
    assert native.rewrite_cost == 0
    assert native.saved == 108_000 * 6_250 + 19 * 108_000 * 500


def test_the_call_for_a_summary_has_its_own_price_where_it_is_recorded():
    asked = Usage(cache_read=148_000, output=2_000)
    talk = growing(Talk(), 60).compacts().call(prompt=40_000, read=16_000, others=(asked,))
    (native,) = talk.audited().natives
    assert native.summary_recorded
    assert native.summary_cost == 148_000 * 500 + 2_000 * 25_000


def pruned(**given: Any) -> Talk:
    """A session of 60 calls whose client clears results, and goes on with 20 calls."""
    talk = growing(Talk(), 60, read=16_000).prunes(**given).tool("text", prompt=120_000, read=30_000)
    for at in range(19):
        talk.tool("text", prompt=121_000 + 1_000 * at, read=120_000 + 1_000 * at)
    return talk


def test_a_prune_by_the_client_costs_what_is_written_again_and_no_summary():
    (native,) = pruned(removed=30_000).audited().natives
    assert (native.kind, native.trigger, native.call, native.served) == ("prune", "auto", 60, 20)
    assert native.summary_cost == 0
    assert not native.summary_recorded
    assert native.rewrite_cost == 90_000 * (6_250 - 500)
    assert native.saved == 20 * 30_000 * 500
    assert native.net == native.saved - native.rewrite_cost


def test_what_a_prune_removed_is_told_by_the_results_it_cleared_where_it_is_not_recorded():
    talk = Talk().says().call(prompt=20_000, read=0)
    talk.tool("word " * 8_000, prompt=30_000, read=20_000).tool("word " * 8_000, prompt=40_000, read=30_000)
    talk = talk.prunes("t1").tool("text", prompt=30_500, read=20_000)
    (native,) = talk.audited().natives
    assert native.saved == pytest.approx(10_000 * 500, rel=0.05)


def test_a_prune_does_not_end_what_a_summary_serves_and_is_ended_by_one():
    talk = compacted(served=5).prunes(removed=1_000).call(prompt=44_000, read=30_000)
    talk = talk.compacts().call(prompt=20_000, read=16_000)
    kinds = [(native.kind, native.served) for native in talk.audited().natives]
    assert kinds == [("summary", 6), ("prune", 1), ("summary", 1)]


def test_between_two_calls_a_summary_counts_and_a_prune_beside_it_does_not():
    talk = growing(Talk(), 60, read=16_000).prunes(removed=5_000).compacts().call(prompt=40_000, read=16_000)
    (native,) = talk.audited().natives
    assert native.kind == "summary"


def test_a_compaction_serves_until_the_next_one():
    talk = compacted(served=5).compacts().call(prompt=20_000, read=16_000)
    assert [native.served for native in talk.audited().natives] == [5, 1]


def test_a_compaction_near_the_wall_comes_later_than_rent_or_buy_would():
    (native,) = compacted().audited().natives
    assert native.earlier is not None
    assert native.earlier > 5


def test_each_compaction_is_set_beside_what_rent_or_buy_would_do_since_the_one_before():
    talk = compacted(served=60).compacts().call(prompt=20_000, read=16_000)
    first, second = talk.audited().natives
    assert second.call == first.call + 60
    assert second.earlier is not None
    assert second.earlier < 60


def test_a_compaction_without_a_price_has_no_money():
    talk = growing(Talk("nobody-knows"), 3).compacts().call(prompt=9_000, read=0)
    recording = talk.recording()
    calls = talk.calls()
    (native,) = natives_of(recording, calls, [None] * len(calls), ratio=0.25, day_of=utc_day)
    assert native.net is None


def test_the_course_has_the_recorded_sizes():
    talk = growing(Talk(), 10, start=30_000, step=2_000)
    sizes = sizes_of(talk.recording(), talk.calls(), tail=SAVINGS_TAIL)
    turns = sizes.course.turns
    assert sizes.course.fixed + sum(turn.whole for turn in turns) == 48_000
    assert all(turn.results > 0.9 * turn.whole for turn in turns[1:])
    assert turns[1].gap == 10.0


def test_a_compaction_leaves_the_course_as_long_as_it_would_have_been():
    talk = growing(Talk(), 10).compacts().tool("line of text\n" * 300, prompt=20_000, read=0)
    turns = sizes_of(talk.recording(), talk.calls(), tail=SAVINGS_TAIL).course.turns
    assert turns[-1].whole == pytest.approx(2_000, rel=0.05)


def test_a_long_session_would_have_been_cheaper_with_rent_or_buy():
    saving = growing(Talk(), 70).audited().saving
    assert saving is not None
    assert saving.never == 0, "its client never compacted"
    assert saving.rent_or_buy > 0
    assert saving.actions > 0


def test_what_the_model_says_a_session_cost_is_near_what_it_cost():
    audited = growing(Talk(), 70).audited()
    assert audited.saving is not None
    cost = sum(row.figures.cost or 0 for row in audited.rows)
    assert audited.saving.modelled == pytest.approx(cost, rel=0.02)


def test_a_short_session_is_left_alone():
    saving = growing(Talk(), 3).audited().saving
    assert saving is not None
    assert (saving.rent_or_buy, saving.actions) == (0, 0)


def test_sub_agents_and_models_are_told():
    audited = growing(Talk(GPT), 2).audited(parent="p", relation="subagent")
    assert (audited.parent, audited.relation, audited.model) == ("p", "subagent", GPT)
    assert audited.started_at == NOON + 10
    assert growing(Talk(OPUS), 2).audited().peak_prompt == 32_000
