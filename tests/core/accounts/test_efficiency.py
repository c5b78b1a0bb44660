"""Efficiency by hand: names that are one model, prices that are not known, and what it recommends."""

import pytest
from msgspec.structs import replace

from lowwater.core.accounts.advice import CODES, SENTENCES, Advice, advice_dollars, advice_sentence
from lowwater.core.accounts.efficiency import efficiency
from lowwater.core.api_calls import Usage
from lowwater.core.events import TurnRecord
from lowwater.core.models.registry import Registry, canonical_model_name
from lowwater.core.stored import Account
from tests.core.accounts.accounts import MODEL, REGISTRY, account, compaction, refused, skip, turn


def codes(*accounts: Account) -> list[str]:
    return [advice.code for advice in efficiency(accounts, REGISTRY).advice]


def said(*accounts: Account, code: str) -> str:
    found = [advice for advice in efficiency(accounts, REGISTRY).advice if advice.code == code]
    assert len(found) == 1
    return advice_sentence(found[0])


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("acme-1", "acme-1"),
        ("openrouter/acme/acme-1", "acme-1"),
        ("Acme 1", "acme-1"),
        ("acme-1@20260115", "acme-1"),
        ("groq/other-7-2026-01-15", "other-7"),
        ("other-7-preview", "other-7"),
        ("other-75", "other-75"),
    ],
)
def test_a_model_has_one_name_however_it_is_spelled(spelled: str, name: str) -> None:
    assert canonical_model_name(spelled, REGISTRY) == name


def test_a_model_that_is_listed_by_who_serves_it_is_the_same_model() -> None:
    registry = Registry([MODEL, replace(MODEL, name="bedrock/acme-1")])
    assert canonical_model_name("bedrock/acme-1-v1:0", registry) == "acme-1"


def test_the_figures_of_a_session_by_hand() -> None:
    found = efficiency(
        [
            account(
                turn(10, read=150_000, write=10_000, cost=27_500_000, untouched=27_500_000),
                compaction(
                    20,
                    mode="summary",
                    before=160_000,
                    after=43_000,
                    cost=31_400_000,
                    summary_tokens=3_000,
                    summarizer="acme-1",
                    score=0.8,
                ),
                turn(20, read=20_000, write=23_000, cost=30_750_000, untouched=16_000_000, removed=117_000),
                turn(30, read=43_000, cost=4_300_000, untouched=16_000_000, removed=117_000),
            )
        ],
        REGISTRY,
    )
    total = found.total
    assert (total.sessions, total.turns, total.passes) == (1, 3, 1)
    assert total.cache_read_share == 213_000 / 246_000
    assert (total.reclaimed, total.saved) == (117_000, 234_000)
    assert (total.summary_cost, total.rewriting_cost) == (31_400_000, 26_450_000)
    assert total.compaction_cost == 57_850_000
    assert total.net == (16_000_000 - 30_750_000) + (16_000_000 - 4_300_000) - 31_400_000
    assert total.score == 0.8
    assert total.summary_cost_per_1000 == 31_400_000 / 3
    assert found.models == (replace(total, model="acme-1"),)
    assert (found.repayment.open, found.repayment.paid, found.repayment.failed) == (1, 0, 0)


def test_unknown_prices_are_missing_and_not_nothing() -> None:
    unpriced = [turn(at, read=10, model="mystery-2", cost=None, untouched=None) for at in range(3)]
    found = efficiency([account(turn(0, cost=7, untouched=9), *unpriced)], REGISTRY)
    mystery = found.models[-1]
    assert (mystery.model, mystery.cost, mystery.net, mystery.unpriced_turns) == ("mystery-2", None, None, 3)
    assert (found.total.cost, found.total.net, found.total.unpriced_turns) == (7, 2, 3)
    assert said(account(*unpriced), code="prices-unknown") == (
        "The prices of mystery-2 are not known: what its turns cost (so many: 3) is missing from every sum."
    )
    assert codes(account(turn(0, cost=None))) == ["turns-unpriced"]
    assert codes(account(turn(0, model="mystery-2", cost=7))) == []


def test_a_compaction_of_unknown_cost_leaves_no_net() -> None:
    happened = (
        turn(1, cost=5, untouched=5),
        compaction(2, cost=None),
        turn(2, cost=5, untouched=9, removed=60),
    )
    found = efficiency([account(*happened)], REGISTRY)
    assert (found.total.net, found.total.unpriced_passes, found.total.summary_cost) == (None, 1, None)


def written(by: str, cost: int, score: float, count: int = 5) -> Account:
    events = [
        compaction(at, mode="summary", summarizer=by, cost=cost, score=score, summary_tokens=1_000)
        for at in range(count)
    ]
    return account(*events, name=by)


def test_summaries_that_cost_more_for_the_same_score_are_named_with_their_numbers() -> None:
    both = written("acme-1-20260101", 40_000_000, 0.91), written("mine", 1_000_000, 0.9)
    assert said(*both, code="summaries-dear") == (
        "Summaries by acme-1 cost 40.0× those by mine for the same score: $0.0400 against $0.00100 per 1,000 tokens, scores "
        "0.91 and 0.9, over 5 and 5 summaries. Let mine write them."
    )


def test_summaries_are_not_compared_by_price_where_they_should_not_be() -> None:
    dear = written("acme-1", 40_000_000, 0.9)
    assert "summaries-dear" not in codes(dear, written("mine", 1_000_000, 0.8))  # worse
    assert "summaries-dear" not in codes(dear, written("mine", 1_000_000, 0.9, count=4))  # too few
    assert "summaries-dear" not in codes(dear, written("mine", 30_000_000, 0.9))  # hardly cheaper
    assert "summaries-dear" not in codes(dear, written("extractive", 0, 0.9))  # no model at all


def test_a_summary_that_another_had_to_write_again_is_not_priced() -> None:
    again = compaction(
        1, mode="summary", summarizer="mine", cost=9, summary_tokens=10, rejected=(refused("acme-1"),)
    )
    found = {each.by: each for each in efficiency([account(again)], REGISTRY).summarizers}
    assert (found["mine"].summaries, found["mine"].priced, found["mine"].cost_per_1000) == (1, 0, None)
    assert (found["acme-1"].summaries, found["acme-1"].rejected) == (0, 1)


def test_summaries_that_are_often_rejected_are_told() -> None:
    vain = [skip(at, "not-smaller", refused("acme-1", said="timed out")) for at in range(5)]
    assert said(account(*vain), code="summaries-rejected").startswith("Of what acme-1 wrote, 5 summaries")
    assert codes(account(*vain[:4])) == []


def session_of(later: int, *, name: str, price: int | None = None) -> Account:
    """Return a session with one compaction of the price 10,000,000 that each later call gives 1,000,000 of back."""
    bought = compaction(20, before=30_000, after=20_000, cost=11_000_000, price=price, saves=1_000_000)
    after = [turn(20 + at, read=20_000, removed=10_000) for at in range(later + 1)]
    return account(turn(10, read=29_000, write=1_000), bought, *after, name=name, ended_at=99.0)


def test_compactions_that_did_not_pay_back_are_counted() -> None:
    many = [session_of(12, name="paid"), *(session_of(at, name=f"s{at}") for at in range(4))]
    found = efficiency(many, REGISTRY).repayment
    assert (found.compactions, found.paid, found.failed, found.undone) == (5, 1, 4, 0)
    assert found.missing == 10_000_000 + 9_000_000 + 8_000_000 + 7_000_000
    assert said(*many, code="not-paid-back").startswith(
        "Of 5 compactions that are over, 4 were undone, replaced or cut short before they had paid for themselves "
        "(undone: 0); $0.0340 of what they cost was never saved."
    )
    assert "not-paid-back" not in codes(*many[:4])


def test_a_prediction_that_was_too_hopeful_is_told() -> None:
    many = [session_of(12, name=str(at), price=4_000_000) for at in range(5)]
    found = efficiency(many, REGISTRY).repayment
    assert (found.compared, found.predicted, found.realised) == (5, 4.0, 10.0)
    assert "after 4.0 later calls and took 10.0, on average over 5" in said(*many, code="payback-slower")
    assert "payback-slower" not in codes(*(session_of(12, name=str(at), price=9_000_000) for at in range(5)))


def test_compaction_that_costs_more_than_it_saves_is_told() -> None:
    losing = [session_of(2, name=str(at)) for at in range(5)]
    assert "$0.0550 more than it saved, over 5 compactions and 20 turns" in said(*losing, code="net-negative")
    assert "net-negative" not in codes(*losing[:4])


def test_a_cache_that_is_not_as_foreseen_is_told_from_twenty_turns_on() -> None:
    off = TurnRecord(
        at=1.0, model="acme-1", usage=Usage(cache_read=80, uncached=20), expected=Usage(cache_read=90), cost=1
    )
    assert "foreseen 10.0% of the prompt off, over 20 turns" in said(
        account(*[off] * 20), code="cache-misjudged"
    )
    assert codes(account(*[off] * 19)) == []
    near = replace(off, expected=Usage(cache_read=84))
    assert codes(account(*[near] * 20)) == []


def test_every_code_has_a_sentence_and_a_strange_one_is_listed() -> None:
    assert set(SENTENCES) == set(CODES)
    assert advice_sentence(Advice(code="from-the-future", facts={"x": 1})) == "from-the-future: x 1."


@pytest.mark.parametrize(
    ("nano", "shown"),
    [(0, "$0.00"), (25_000, "$0.0000250"), (123_456_789, "$0.123"), (1_234_567_890_000, "$1,234.57"), (-5 * 10**8, "-$0.500")],
)  # fmt: skip
def test_dollars_keep_the_digits_that_count(nano: int, shown: str) -> None:
    assert advice_dollars(nano) == shown
