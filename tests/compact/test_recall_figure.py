import pytest

from bench.recall import RATIO, WANTED, measure, with_digest
from bench.transcripts import CANONICAL


@pytest.mark.full
@pytest.mark.skipif(not CANONICAL.exists(), reason="the recorded sessions are not on this machine")
def test_digests_keep_at_least_85_per_cent_of_late_uses_at_16_per_cent_of_the_tokens():
    digest = measure({"digest": with_digest})["digest"]
    assert RATIO == 0.16
    assert digest.over == 0
    assert digest.kept["report", "all"].uses > 2_000
    assert digest.kept["report", "all"].share >= WANTED == 0.85
