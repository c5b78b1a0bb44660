import pytest

from bench.recall import LEAST, RATIO, WANTED, measure, with_digest
from bench.transcripts import CANONICAL


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.exists(), reason="the recorded sessions are not on this machine")
def test_digests_keep_at_least_85_per_cent_of_late_uses_at_16_per_cent_of_the_tokens():
    """Of the sources that were there when they were tuned; of one that came later as a whole, 73 per cent."""
    digest = measure({"digest": with_digest})["digest"]
    assert RATIO == 0.16
    assert digest.over == 0
    assert digest.seen.uses > 2_000
    assert digest.seen.share >= WANTED == 0.85
    by_source = {source: digest.of_source(source) for source in LEAST}
    assert all(kept.uses > 50 for kept in by_source.values())
    assert {source: kept.share for source, kept in by_source.items() if kept.share < LEAST[source]} == {}
