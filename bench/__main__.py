"""Measures everything again: `make bench`."""

import sys

from bench import counting, economics, hermes, policies, recall, store, summary
from bench.ledger import report
from lowwater.adapters.tokenizer import tokenizer_for

print(report(tokenizer_for("o200k")))
missed = counting.main([])
for measure in (
    recall.main,
    summary.main,
    hermes.main,
    store.main,
    lambda: economics.main([]),
    policies.main,
):
    print(flush=True)
    missed |= measure()
sys.exit(missed)
