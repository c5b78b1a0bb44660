import pytest

from bench.recall import LEAST, LEFT_OUT, RATIO, WANTED, measure, with_digest
from bench.transcripts import CANONICAL


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.exists(), reason="the recorded sessions are not on this machine")
def test_digests_keep_88_per_cent_of_late_uses_at_16_per_cent_of_the_tokens_with_each_source_left_out():
    measured = measure({"digest": with_digest})
    left_out = measured[LEFT_OUT]
    assert RATIO == 0.16
    assert [way.over for way in measured.values()] == [0, 0]
    assert left_out.kept["all"].uses > 5_000
    assert left_out.kept["all"].share >= WANTED == 0.88
    by_source = {source: left_out.of_source(source) for source in LEAST}
    assert all(kept.uses > 50 for kept in by_source.values())
    assert {source: kept.share for source, kept in by_source.items() if kept.share < LEAST[source]} == {}
