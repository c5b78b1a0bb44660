"""Who writes a summary, by arithmetic and by what fits."""

from msgspec.structs import replace

from lowwater.economics.summary_cost import SummaryWork, cheapest_summary, native_call, summary_calls
from lowwater.load.registry import load_registry

REGISTRY = load_registry()
OPUS = REGISTRY.find("claude-opus-5-5")
HAIKU = replace(
    REGISTRY.find("claude-opus-5-5"),
    name="small",
    context_length=100_000,
    prices=REGISTRY.find("gpt-5").prices,
)
WARM = SummaryWork(prompt=160_000, hit=160_000, replaced=120_000, instruction=400, summary=3_000)
COLD = replace(WARM, hit=0)


def test_riding_the_prefix_by_hand():
    best = cheapest_summary(WARM, OPUS)
    assert best is not None
    # 160,000 x 200 + 400 x 4,000 + 3,000 x 20,000
    assert (best.how, best.cost) == ("riding", 93_600_000)


def test_the_same_request_cold_by_hand():
    best = cheapest_summary(COLD, OPUS)
    assert best is not None
    # 160,400 x 4,000 + 3,000 x 20,000: without marks, nothing is written
    assert (best.how, best.cost) == ("cold", 701_600_000)


def test_another_model_is_asked_where_it_is_cheaper():
    other = replace(HAIKU, context_length=400_000)
    # 120,400 x 1,250 + 3,000 x 10,000 = 180,500,000: dearer than riding, cheaper than cold
    warm = cheapest_summary(WARM, OPUS, other=other)
    cold = cheapest_summary(COLD, OPUS, other=other)
    assert warm is not None
    assert cold is not None
    assert (warm.how, cold.how, cold.model, cold.cost) == ("riding", "other", "small", 180_500_000)


def test_a_window_that_is_too_small_is_never_chosen():
    assert [call.how for call in summary_calls(COLD, OPUS, other=HAIKU)] == ["cold"]
    full = replace(OPUS, context_length=163_399)
    assert cheapest_summary(COLD, full) is None
    assert cheapest_summary(COLD, replace(OPUS, context_length=163_400)) is not None


def test_a_known_price_goes_before_an_unknown_one():
    unknown = replace(HAIKU, prices=None, context_length=400_000)
    best = cheapest_summary(COLD, OPUS, other=unknown)
    assert best is not None
    assert best.how == "cold"
    alone = cheapest_summary(COLD, replace(OPUS, context_length=1_000), other=unknown)
    assert alone is not None
    assert (alone.how, alone.cost) == ("other", None)


def test_the_providers_own_compaction_by_hand():
    work = SummaryWork(prompt=140_000, hit=138_000, replaced=120_000, instruction=400, summary=3_000)
    warm, cold = native_call(work, OPUS), native_call(replace(work, hit=0), OPUS)
    assert warm is not None
    assert cold is not None
    # 138,000 x 200 + 2,000 x 5,000 + 400 x 4,000 + 3,000 x 20,000: what lies behind the newest boundary is written
    assert (warm.how, warm.cost) == ("native", 99_200_000)
    # 140,400 x 4,000 + 3,000 x 20,000: without marks, nothing is written
    assert cold.cost == 621_600_000
    long = native_call(work, OPUS, lifetime="long")
    assert long is not None
    assert long.cost == 99_200_000 + 2_000 * (8_000 - 5_000)


def test_what_does_not_fit_the_window_is_not_compacted_by_its_provider_either():
    work = SummaryWork(prompt=140_000, hit=0, replaced=120_000, instruction=400, summary=3_000)
    assert native_call(work, replace(OPUS, context_length=143_399)) is None
    assert native_call(work, replace(OPUS, context_length=143_400)) is not None
