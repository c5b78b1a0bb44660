"""The figure of issue 3: a summary of a long recorded session keeps 80 % of its critical references."""

from statistics import mean

import pytest

from bench.summary import BUDGETS, TARGET, cases, in_one_go
from bench.transcripts import ABSENT, CANONICAL
from lowwater.adapters.tokenizer import tokenizer_for


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.is_dir(), reason=ABSENT)
def test_long_recorded_sessions_keep_their_critical_references():
    tokenizer = tokenizer_for("o200k")
    measured = [in_one_go(case, BUDGETS[0], tokenizer) for case in cases(tokenizer)]
    assert mean(one.kept for one in measured) >= TARGET
    assert max(one.tokens for one in measured) <= BUDGETS[0]
