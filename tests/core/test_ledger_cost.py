"""One more message costs the same on a long history as on a short one, when the views are equal."""

from bench.ledger import append_costs
from lowwater.adapters.tokenizer import tokenizer_for


def test_appending_to_ten_thousand_messages_costs_what_it_costs_to_two_hundred() -> None:
    tokenizer = tokenizer_for("o200k")
    ratios = []
    for _ in range(3):  # the machine is noisy: one quiet run in three is enough to tell 1× from 50×
        short, long = append_costs(tokenizer)
        ratios.append(long / short)
    assert min(ratios) < 2
