"""Who writes a summary, by arithmetic and by what fits."""

from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import SummaryWork, native_call, summary_calls
from lowwater.core.models.model import Model

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


def costs(work: SummaryWork, model: Model, other: Model | None = None) -> dict[str, int | None]:
    """Return what each way to get a summary costs."""
    return {call.how: call.cost for call in summary_calls(work, model, other=other)}


def test_extending_the_cached_prefix_by_hand():
    # 160,000 x 200 + 400 x 4,000 + 3,000 x 20,000
    assert costs(WARM, OPUS) == {"warm": 93_600_000}


def test_the_same_request_cold_by_hand():
    # 160,400 x 4,000 + 3,000 x 20,000: without marks, nothing is written
    assert costs(COLD, OPUS) == {"cold": 701_600_000}


def test_another_model_is_shown_only_what_is_replaced():
    other = replace(HAIKU, context_length=400_000)
    # 120,400 x 1,250 + 3,000 x 10,000
    assert costs(WARM, OPUS, other) == {"warm": 93_600_000, "other": 180_500_000}
    assert costs(COLD, OPUS, other) == {"cold": 701_600_000, "other": 180_500_000}
    assert [call.model for call in summary_calls(COLD, OPUS, other=other)] == [OPUS.name, "small"]


def test_a_window_that_is_too_small_is_never_chosen():
    assert [call.how for call in summary_calls(COLD, OPUS, other=HAIKU)] == ["cold"]
    assert costs(COLD, replace(OPUS, context_length=163_399)) == {}
    assert costs(COLD, replace(OPUS, context_length=163_400)).keys() == {"cold"}


def test_a_model_without_a_price_costs_nobody_knows_what():
    unknown = replace(HAIKU, prices=None, context_length=400_000)
    assert costs(COLD, OPUS, unknown) == {"cold": 701_600_000, "other": None}


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
