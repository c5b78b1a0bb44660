"""Measures everything again: `make bench`."""

import sys

from bench import counting
from bench.ledger import report
from lowwater.load.tokenizer import tokenizer_for

print(report(tokenizer_for("o200k")))
print()
sys.exit(counting.main([]))
