"""What each provider's rule finds and writes, case by case."""

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.cache.belief import Belief, Layout, after_call, expected_usage, warmth
from lowwater.core.models.model import CacheRules, Model, Prices, SteppedPrefixes
from tests.core.cache.layouts import layout_of

REGISTRY = load_registry()
CLAUDE = REGISTRY.find("claude-opus-5-5")
OPENAI_NEW = REGISTRY.find("gpt-6.1-sol")
OPENAI_OLD = REGISTRY.find("gpt-5")
DEEPSEEK = REGISTRY.find("deepseek-flash")
KIMI = REGISTRY.find("kimi-k3")
QWEN = REGISTRY.find("qwen3.8-max")
GEMINI = REGISTRY.find("gemini-2.5-pro")


def after(model: Model, *layouts: Layout, each: float = 1.0) -> Belief:
    """The belief after calls with these layouts, at 0, `each`, 2 x `each`."""
    belief = Belief()
    for turn, layout in enumerate(layouts):
        belief = after_call(belief, layout, model, turn * each).belief
    return belief


def hosted(name: str, step: int) -> Model:
    rules = CacheRules(
        matching=SteppedPrefixes(tokens=step), refreshed_by_hit=True, min_cacheable=step, output_cached=True
    )
    prices = Prices(input=100, cache_read=10, cache_write=100, output=300)
    return Model(name=name, provider="self", family=name, context_length=9**9, cache=rules, prices=prices)


class TestMarksWithLookback:
    def test_a_first_call_writes_up_to_its_last_mark(self):
        layout = layout_of([5_000, 3_000, 200, 50], marks={0: "short", 2: "short"})
        expected = Usage(cache_write=8_200, uncached=50)
        assert expected_usage(Belief(), layout, CLAUDE, 0) == expected

    def test_the_next_call_reads_what_the_last_mark_wrote(self):
        belief = after(CLAUDE, layout_of([5_000, 3_000, 200], marks={0: "short", 2: "short"}))
        grown = layout_of([5_000, 3_000, 200, 400, 100], marks={0: "short", 4: "short"})
        assert expected_usage(belief, grown, CLAUDE, 300) == Usage(cache_read=8_200, cache_write=500)

    def test_one_second_after_the_lifetime_it_is_cold(self):
        belief = after(CLAUDE, layout_of([5_000], marks={0: "short"}))
        grown = layout_of([5_000, 10], marks={1: "short"})
        assert expected_usage(belief, grown, CLAUDE, 301) == Usage(cache_write=5_010)

    @pytest.mark.parametrize(("added", "read"), [(20, 5_000), (21, 0)], ids=["20 blocks", "21 blocks"])
    def test_a_mark_looks_back_twenty_blocks(self, added: int, read: int):
        belief = after(CLAUDE, layout_of([5_000], marks={0: "short"}))
        grown = layout_of([5_000] + [10] * added, marks={added: "short"})
        assert expected_usage(belief, grown, CLAUDE, 1).cache_read == read

    def test_a_mark_in_between_bridges_a_longer_way(self):
        belief = after(CLAUDE, layout_of([5_000], marks={0: "short"}))
        grown = layout_of([5_000] + [10] * 30, marks={15: "short", 30: "short"})
        assert expected_usage(belief, grown, CLAUDE, 1) == Usage(cache_read=5_000, cache_write=300)

    def test_a_prefix_below_the_minimum_is_not_stored(self):
        small = layout_of([511, 1], marks={0: "short"})
        assert expected_usage(Belief(), small, CLAUDE, 0) == Usage(uncached=512)
        assert after(CLAUDE, small) == Belief()
        assert after(CLAUDE, layout_of([512], marks={0: "short"})) != Belief()

    def test_writes_are_billed_by_the_lifetime_of_their_mark(self):
        layout = layout_of([5_000, 3_000, 700, 9], marks={0: "long", 1: "long", 2: "short"})
        expected = Usage(cache_write_long=8_000, cache_write=700, uncached=9)
        assert expected_usage(Belief(), layout, CLAUDE, 0) == expected
        grown = layout_of([5_000, 3_000, 700, 9, 100], marks={0: "long", 1: "long", 4: "short"})
        assert expected_usage(after(CLAUDE, layout), grown, CLAUDE, 200) == Usage(
            cache_read=8_700, cache_write=109
        )

    def test_the_long_lifetime_outlives_the_short_one(self):
        belief = after(CLAUDE, layout_of([5_000, 700], marks={0: "long", 1: "short"}))
        grown = layout_of([5_000, 700, 9], marks={0: "long", 2: "short"})
        assert expected_usage(belief, grown, CLAUDE, 3_600) == Usage(cache_read=5_000, cache_write=709)
        assert expected_usage(belief, grown, CLAUDE, 3_601).cache_read == 0

    def test_a_hit_prolongs_the_life(self):
        layout = layout_of([5_000, 10], marks={0: "short"})
        belief = after(CLAUDE, layout, layout, each=250)
        assert expected_usage(belief, layout, CLAUDE, 500).cache_read == 5_000

    def test_without_marks_nothing_is_cached(self):
        bare = layout_of([50_000])
        assert expected_usage(after(CLAUDE, bare), bare, CLAUDE, 1) == Usage(uncached=50_000)

    def test_only_the_newest_four_marks_count(self):
        layout = layout_of([1_000] * 6, marks=dict.fromkeys(range(6), "short"))
        assert len(after(CLAUDE, layout).boundaries) == 4

    def test_qwen_caches_by_itself_instead(self):
        bare = layout_of([5_000, 100])
        assert expected_usage(after(QWEN, bare), bare, QWEN, 1).cache_read > 5_000
        marked = layout_of([5_000, 100], marks={0: "short"})
        assert expected_usage(Belief(), marked, QWEN, 0) == Usage(cache_write=5_000, uncached=100)


class TestMarksWithHistory:
    def test_the_provider_places_one_mark_at_the_end(self):
        layout = layout_of([5_000, 300])
        assert expected_usage(Belief(), layout, OPENAI_NEW, 0) == Usage(cache_write=5_300)
        grown = layout_of([5_000, 300, 80, 20])
        assert expected_usage(after(OPENAI_NEW, layout), grown, OPENAI_NEW, 1_800) == Usage(
            cache_read=5_300, cache_write=100
        )
        assert expected_usage(after(OPENAI_NEW, layout), grown, OPENAI_NEW, 1_801).cache_read == 0

    def test_it_may_be_forbidden_to(self):
        layout = layout_of([5_000, 300], marks={0: "short"}, automatic="")
        assert expected_usage(Belief(), layout, OPENAI_NEW, 0) == Usage(cache_write=5_000, uncached=300)

    def test_its_mark_counts_among_the_four(self):
        layout = layout_of([2_000] * 6, marks=dict.fromkeys(range(4), "short"))
        keys = {boundary.key for boundary in after(OPENAI_NEW, layout).boundaries}
        assert keys == {layout.blocks[at].key for at in (1, 2, 3, 5)}

    def test_no_number_of_blocks_is_too_many(self):
        belief = after(OPENAI_NEW, layout_of([5_000]))
        assert expected_usage(belief, layout_of([5_000] + [1] * 500), OPENAI_NEW, 1).cache_read == 5_000

    @pytest.mark.parametrize(
        ("between", "read"), [(79, 2_000), (80, 0)], ids=["79 marks since", "80 marks since"]
    )
    def test_the_latest_eighty_marks_are_looked_at(self, between: int, read: int):
        others = [layout_of([2_000], names=[f"other {at}"]) for at in range(between)]
        belief = after(OPENAI_NEW, layout_of([2_000]), *others)
        assert expected_usage(belief, layout_of([2_000, 5]), OPENAI_NEW, 90).cache_read == read

    def test_twelve_hours_are_written_at_their_own_price(self):
        layout = layout_of([5_000, 300], automatic="long")
        assert expected_usage(Belief(), layout, OPENAI_NEW, 0) == Usage(cache_write_long=5_300)
        assert expected_usage(after(OPENAI_NEW, layout), layout, OPENAI_NEW, 43_200).cache_read == 5_300


class TestSteps:
    @pytest.mark.parametrize(
        ("shared", "read"),
        [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (5_000, 4_992)],
        ids=["below", "at the minimum", "below a step", "a step", "39 steps"],
    )
    def test_old_openai_reads_whole_steps_from_1024_on(self, shared: int, read: int):
        belief = after(OPENAI_OLD, layout_of([shared, 400], names=["a", "b"]))
        other = layout_of([shared, 900], names=["a", "c"])
        assert expected_usage(belief, other, OPENAI_OLD, 1) == Usage(
            cache_read=read, uncached=shared + 900 - read
        )

    @pytest.mark.parametrize(
        ("model", "read"),
        [(KIMI, 4_864), (hosted("vllm", 16), 4_992), (hosted("sglang", 1), 5_000)],
        ids=["kimi 256", "vllm 16", "sglang 1"],
    )
    def test_blocks_of_n_tokens(self, model: Model, read: int):
        belief = after(model, layout_of([5_000]))
        assert expected_usage(belief, layout_of([5_000, 77]), model, 0).cache_read == read

    def test_an_undocumented_step_is_one_token(self):
        belief = after(GEMINI, layout_of([5_001]))
        assert warmth(belief, layout_of([5_001, 9]), GEMINI.cache, 0).hit() == 5_001

    def test_kimi_writes_for_an_hour_at_the_price_of_that(self):
        layout = layout_of([5_000], automatic="long")
        assert expected_usage(Belief(), layout, KIMI, 0) == Usage(cache_write_long=5_000)
        assert expected_usage(after(KIMI, layout), layout, KIMI, 3_600).cache_read == 4_864

    def test_an_answer_is_inside_the_hit_where_outputs_are_cached(self):
        model = hosted("vllm", 16)
        asked = layout_of([1_600])
        answered = layout_of([1_600, 160, 40])
        key = answered.blocks[1].key
        known = after_call(Belief(), asked, model, 0, output_key=key, output_tokens=160).belief
        assert expected_usage(known, answered, model, 0).cache_read == 1_760
        assert expected_usage(after(model, asked), answered, model, 0).cache_read == 1_600

    def test_a_request_may_keep_out_of_the_cache(self):
        layout = layout_of([5_000], automatic="")
        assert after(OPENAI_OLD, layout) == Belief()
        assert expected_usage(after(OPENAI_OLD, layout_of([5_000])), layout, OPENAI_OLD, 1) == Usage(
            uncached=5_000
        )


class TestUnits:
    def test_a_whole_unit_must_match(self):
        belief = after(DEEPSEEK, layout_of([4_000, 1_000], names=["a", "b"]))
        assert expected_usage(belief, layout_of([4_000, 900], names=["a", "c"]), DEEPSEEK, 0).cache_read == 0
        assert (
            expected_usage(belief, layout_of([4_000, 1_000, 50], names="abc"), DEEPSEEK, 0).cache_read
            == 5_000
        )

    def test_the_output_ends_a_unit(self):
        grown = layout_of([4_000, 300, 20])
        key = grown.blocks[1].key
        belief = after_call(
            Belief(), layout_of([4_000]), DEEPSEEK, 0, output_key=key, output_tokens=300
        ).belief
        assert expected_usage(belief, grown, DEEPSEEK, 0) == Usage(cache_read=4_300, uncached=20)

    def test_every_earlier_request_left_its_unit(self):
        belief = after(DEEPSEEK, layout_of([4_000]), layout_of([4_000, 500]), layout_of([4_000, 500, 80]))
        warm = warmth(belief, layout_of([4_000, 500, 80]), DEEPSEEK.cache, 2)
        assert [warm.hit(upto) for upto in (3_999, 4_000, 4_499, 4_500, 4_580)] == [
            0,
            4_000,
            4_000,
            4_500,
            4_580,
        ]

    def test_ends_inside_what_was_not_read_stand_in_for_intervals(self):
        ended = layout_of([4_000, 500, 80, 9])
        blocks = tuple(
            replace(block, ends="input" if at == 1 else "") for at, block in enumerate(ended.blocks)
        )
        long_input = Layout(blocks=blocks)
        assert [boundary.tokens for boundary in after(DEEPSEEK, long_input).boundaries] == [4_500, 4_589]
        known = after(DEEPSEEK, layout_of([4_000, 500]), long_input)
        assert warmth(known, long_input, DEEPSEEK.cache, 2).positions == (4_500, 4_589)
