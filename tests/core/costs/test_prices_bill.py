"""Bills computed by hand, to the nano-dollar. A price is nano-dollars per 1,000 tokens: $4 per million is 4,000,000."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of, cost_of_all
from lowwater.core.models.model import CacheRules, Model, Prices, Uncached

REGISTRY = load_registry()


def at(year: int, month: int, day: int, hour: int = 12, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()


def test_anthropic_with_five_minute_writes():
    usage = Usage(uncached=37, cache_read=96_412, cache_write=2_871, output=1_243)
    # claude-opus-5-5: $4 input, $0.20 read, $5 write, $20 output, so 4,000 / 200 / 5,000 / 20,000 nano-dollars a token
    # 37 x 4,000       =    148,000
    # 96,412 x 200     = 19,282,400
    # 2,871 x 5,000    = 14,355,000
    # 1,243 x 20,000   = 24,860,000
    assert cost_of(usage, REGISTRY.find("claude-opus-5-5")) == 58_645_400


def test_anthropic_with_one_hour_writes():
    usage = Usage(uncached=12, cache_read=20_000, cache_write=700, cache_write_long=8_001, output=500)
    # claude-opus-5-5, 1h writes at $8
    # 12 x 4,000 = 48,000; 20,000 x 200 = 4,000,000; 700 x 5,000 = 3,500,000
    # 8,001 x 8,000 = 64,008,000; 500 x 20,000 = 10,000,000
    assert cost_of(usage, REGISTRY.find("claude-opus-5-5")) == 81_556_000


def test_openai_before_writes_cost_anything():
    usage = Usage(uncached=3_517, cache_read=48_128, output=901)
    # gpt-5: $1.25 input, $0.125 read, $10 output
    # 3,517 x 1,250 = 4,396,250; 48,128 x 125 = 6,016,000; 901 x 10,000 = 9,010,000
    assert cost_of(usage, REGISTRY.find("gpt-5")) == 19_422_250


NEW = Usage(uncached=1_000, cache_read=200_000, cache_write=70_000, cache_write_long=1_000, output=2_000)


def test_openai_with_writes_up_to_the_cliff():
    # gpt-6.1-sol: $2 input, $0.10 read, $2.50 write, $5 long write, $10 output; 272,000 tokens are not above 272,000
    # 1,000 x 2,000 = 2,000,000; 200,000 x 100 = 20,000,000; 70,000 x 2,500 = 175,000,000
    # 1,000 x 5,000 = 5,000,000; 2,000 x 10,000 = 20,000,000
    assert NEW.prompt == 272_000
    assert cost_of(NEW, REGISTRY.find("gpt-6.1-sol")) == 222_000_000


def test_openai_one_token_above_the_cliff_bills_the_whole_request_higher():
    usage = Usage(
        uncached=1_001, cache_read=200_000, cache_write=70_000, cache_write_long=1_000, output=2_000
    )
    # above 272,000: $4 input, $0.20 read, $5 write, $10 long write, $15 output
    # 1,001 x 4,000 = 4,004,000; 200,000 x 200 = 40,000,000; 70,000 x 5,000 = 350,000,000
    # 1,000 x 10,000 = 10,000,000; 2,000 x 15,000 = 30,000,000
    assert cost_of(usage, REGISTRY.find("gpt-6.1-sol")) == 434_004_000


DEEPSEEK = Usage(uncached=1_234, cache_read=87_654, output=321)


@pytest.mark.parametrize(
    ("moment", "cost"),
    [
        # deepseek-flash off-peak: $0.15 input, $0.003 read, $0.60 output
        # 1,234 x 150 = 185,100; 87,654 x 3 = 262,962; 321 x 600 = 192,600
        (None, 640_662),
        (at(2026, 11, 16, 5), 640_662),
        (at(2026, 11, 16, 10), 640_662),
        # twice that on a Monday from 01:00 to 04:00 and from 06:00 to 10:00 UTC
        (at(2026, 11, 16, 1), 1_281_324),
        (at(2026, 11, 16, 9, 59), 1_281_324),
        (at(2026, 11, 20, 2), 1_281_324),
        # and not at weekends
        (at(2026, 11, 21, 2), 640_662),
        (at(2026, 11, 22, 7), 640_662),
    ],
    ids=["no moment", "between", "after", "Monday 1h", "Monday 9:59", "Friday 2h", "Saturday", "Sunday"],
)
def test_deepseek_by_the_hour(moment: float | None, cost: int):
    assert cost_of(DEEPSEEK, REGISTRY.find("deepseek-flash"), moment) == cost


@pytest.mark.parametrize(
    ("moment", "cost"),
    [
        # gemini-4-argon: $2 input, $0.10 read, $10 output
        # 5,003 x 2,000 = 10,006,000; 60,000 x 100 = 6,000,000; 777 x 10,000 = 7,770,000
        (at(2026, 11, 30, 23, 59), 23_776_000),
        # $4, $0.20 and $20 from December on
        (at(2026, 12, 1, 0), 47_552_000),
    ],
    ids=["introductory", "from December"],
)
def test_gemini_by_the_day(moment: float, cost: int):
    usage = Usage(uncached=5_003, cache_read=60_000, output=777)
    assert cost_of(usage, REGISTRY.find("gemini-4-argon"), moment) == cost


def test_gemini_above_its_cliff():
    # gemini-2.5-pro above 200,000: $2.50 input, $0.25 read, $15 output
    # 1 x 2,500 + 200,000 x 250 + 10 x 15,000
    usage = Usage(uncached=1, cache_read=200_000, output=10)
    assert cost_of(usage, REGISTRY.find("gemini-2.5-pro")) == 50_152_500


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 11, 16, 2, tzinfo=UTC),
        datetime(2026, 11, 17, 12, tzinfo=UTC),
        datetime(2027, 1, 1, 8, tzinfo=UTC),
    ],
    ids=["a Monday night", "a Tuesday noon", "New Year, a Friday morning"],
)
@pytest.mark.parametrize(
    "name", [model.name for model in REGISTRY.models if model.periods] + ["claude-opus-5-5", "gpt-5"]
)
def test_prices_by_day_and_hour_agree_with_genai_prices(name: str, moment: datetime):
    model = REGISTRY.find(name)
    _, found = get_snapshot().find_provider_model(name, None, model.provider, None)
    listed = found.get_prices(moment)
    ours = model.prices_at(0, moment.timestamp())
    assert ours is not None
    dollars = [amount / 1_000_000 for amount in (ours.input, ours.cache_read, ours.output)]
    assert dollars == [
        _base(each) for each in (listed.input_mtok, listed.cache_read_mtok, listed.output_mtok)
    ]


def _base(listed: Decimal | TieredPrices | None) -> float:
    assert listed is not None
    return float(listed if isinstance(listed, Decimal) else listed.base)


def test_the_sum_is_divided_once():
    prices = Prices(input=300, cache_read=300, cache_write=300, output=300)
    # 0.3 nano-dollars a token: five tokens are 1.5, and each alone would round to nothing
    usage = Usage(uncached=1, cache_read=1, cache_write=1, cache_write_long=1, output=1)
    assert cost_of(usage, _model(prices)) == 2


def test_an_unknown_price_has_no_cost():
    assert cost_of(Usage(uncached=1), _model(None)) is None
    assert cost_of_all([Usage(uncached=1)], _model(None)) is None


def test_a_compaction_on_the_provider_side_is_billed_by_its_own_size():
    model = REGISTRY.find("gpt-6.1-sol")
    apart = cost_of_all([NEW, Usage(uncached=1_000, output=100)], model)
    # 222,000,000 as above, and 1,000 x 2,000 + 100 x 10,000; added up they would cross the cliff
    assert apart == 222_000_000 + 3_000_000


def _model(prices: Prices | None) -> Model:
    rules = CacheRules(matching=Uncached())
    return Model(name="m", provider="p", family="", context_length=1_000, cache=rules, prices=prices)
