"""Losses of the cache: none in the neutral arm, as many as declared in the other, the same for every policy."""

from lowwater.lab.replay.script import NEUTRAL, PESSIMISTIC, Arm, cache_losses

GAPS = [30.0] * 4_000


def test_the_neutral_arm_loses_nothing():
    assert not any(cache_losses(NEUTRAL, "session", GAPS))


def test_the_draws_depend_on_the_session_and_the_seed_only():
    assert cache_losses(PESSIMISTIC, "one", GAPS) == cache_losses(PESSIMISTIC, "one", GAPS)
    assert cache_losses(PESSIMISTIC, "one", GAPS) != cache_losses(PESSIMISTIC, "two", GAPS)
    again = Arm(name="again", evicted=PESSIMISTIC.evicted, missed=PESSIMISTIC.missed, seed=1)
    assert cache_losses(again, "one", GAPS) != cache_losses(PESSIMISTIC, "one", GAPS)


def test_evictions_grow_with_the_gap_and_misses_do_not():
    only_evicted = Arm(name="evicted", evicted=0.04)
    short, long = (sum(cache_losses(only_evicted, "s", [gap] * 4_000)) / 4_000 for gap in (60.0, 600.0))
    assert abs(short - 0.04) < 0.01
    assert abs(long - (1 - 0.96**10)) < 0.03
    only_missed = Arm(name="missed", missed=0.03)
    assert (
        sum(cache_losses(only_missed, "s", [0.0] * 4_000))
        == sum(cache_losses(only_missed, "s", [600.0] * 4_000))
        > 0
    )
