import os
import subprocess
import sys
from hashlib import sha256
from typing import get_args

import pytest

from lowwater.errors import BadSetting
from tests.generated import Kind, Pauses, generate_session

KINDS = get_args(Kind)

# The first 16 digits of the SHA-256 of seed 7 in the canonical form: a change here changes every recorded figure.
DIGESTS = {
    "coding": "3246a31f75f829ac",
    "research": "1b943f8ad65fe5b9",
    "support": "e4fa7d04ad133437",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_bytes_it_always_gave(kind: Kind) -> None:
    session = generate_session(kind, seed=7, turns=120)
    assert sha256(session.as_canonical_jsonl()).hexdigest()[:16] == DIGESTS[kind]


def test_another_process_gives_the_same_bytes() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.generated",
        "--kind",
        "coding",
        "--seed",
        "7",
        "--turns",
        "120",
    ]
    made = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": "4242"}
    )
    assert sha256(made.stdout).hexdigest()[:16] == DIGESTS["coding"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_session_ends_with_an_answer_after_that_many_calls(kind: Kind) -> None:
    for turns in (1, 2, 3, 17, 60):
        session = generate_session(kind, seed=5, turns=turns)
        assert len(session.usages) == turns
        assert session.messages[0].role == "user"
        assert session.messages[-1].role == "assistant"
        assert not session.messages[-1].calls


@pytest.mark.parametrize("kind", KINDS)
def test_the_session_stops_at_the_wanted_size(kind: Kind) -> None:
    session = generate_session(kind, seed=3, target_tokens=40_000)
    last = session.usages[-1]
    assert 40_000 <= last.prompt + last.output < 40_000 + 30_000
    assert session.usages[-2].prompt < 40_000


def test_of_two_limits_the_first_reached_counts() -> None:
    assert len(generate_session(seed=1, turns=10, target_tokens=10_000_000).usages) == 10
    assert len(generate_session(seed=1, turns=10_000, target_tokens=20_000).usages) < 200


@pytest.mark.parametrize("limit", [{"turns": 0}, {"turns": -3}, {"target_tokens": 0}], ids=str)
def test_a_limit_that_makes_no_sense_is_refused(limit: dict[str, int]) -> None:
    with pytest.raises(BadSetting, match="at least 1"):
        generate_session(seed=1, **limit)  # type: ignore[arg-type]  # the limits are all that is given


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match="coding, research, support"):
        generate_session("cooking", seed=1)  # type: ignore[arg-type]  # the point of the test


def test_the_model_and_the_start_are_the_callers() -> None:
    session = generate_session(seed=1, turns=2, model="gpt-6.1-sol", start=1_000_000.0)
    assert session.model == "gpt-6.1-sol"
    assert session.times[0] == 1_000_000.0


def test_without_pauses_only_slow_tools_let_the_cache_expire() -> None:
    session = generate_session(seed=2, turns=200, pauses=Pauses(coffee=0, overnight=0))
    gaps = [after - before for before, after in zip(session.times, session.times[1:], strict=False)]
    assert max(gaps) < 400


def test_a_user_who_always_leaves_overnight_comes_back_the_next_day() -> None:
    session = generate_session("support", seed=2, turns=40, pauses=Pauses(coffee=0, overnight=1))
    before_user = [
        after - before
        for before, after, message in zip(
            session.times, session.times[1:], session.messages[1:], strict=False
        )
        if message.role == "user"
    ]
    assert before_user
    assert min(before_user) >= 9 * 3600
