"""Retries only what is worth retrying, and never beyond the time there is."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.errors import SummaryFailed
from lowwater.summarizers.exchange import TRIES, Lost, Post, Reply, RetryPause, StepResult, exchange

OK = Reply(status=200, headers={}, body=b"done")


def status(number: int, **headers: str) -> Reply:
    return Reply(
        status=number, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=b""
    )


def played(*outcomes: Reply | Lost, left: Callable[[], float] = lambda: 60.0) -> tuple[Any, list[Any]]:
    """What came of an exchange in which these things happen, and the steps it took."""
    steps: list[Any] = []
    script = iter(outcomes)
    running = exchange(b"asked", left)
    outcome: StepResult = None
    try:
        while True:
            step = running.send(outcome)
            steps.append(step)
            outcome = next(script) if isinstance(step, Post) else None
    except StopIteration as done:
        return done.value, steps
    except SummaryFailed as failure:
        return failure, steps


def pauses(steps: list[Any]) -> list[float]:
    return [step.seconds for step in steps if isinstance(step, RetryPause)]


def test_an_answer_is_returned_at_once() -> None:
    assert played(OK) == (b"done", [Post(body=b"asked", seconds=60.0)])


@pytest.mark.parametrize("number", [408, 425, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_again(number: int) -> None:
    answer, steps = played(status(number), status(number), OK)
    assert answer == b"done"
    assert pauses(steps) == [0.5, 1.0]


@pytest.mark.parametrize("number", [301, 400, 401, 402, 403, 404, 405, 413, 422])
def test_what_stays_is_not(number: int) -> None:
    failure, steps = played(status(number))
    assert failure.kind in ("auth", "refused")
    assert len(steps) == 1


def test_a_bounded_number_of_times() -> None:
    failure, steps = played(*[status(529)] * TRIES)
    assert failure.kind == "network"
    assert sum(isinstance(step, Post) for step in steps) == TRIES


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry_after": "7"}, 7.0), ({"retry_after": "0"}, 0.0), ({"retry_after_ms": "250"}, 0.25)],
)
def test_the_provider_says_how_long_to_wait(headers: dict[str, str], seconds: float) -> None:
    answer, steps = played(status(429, **headers), OK)
    assert answer == b"done"
    assert pauses(steps) == [seconds]


def test_a_wait_beyond_the_time_left_is_not_begun() -> None:
    failure, steps = played(status(429, retry_after="3600"))
    assert failure.kind == "timeout"
    assert "3600 s" in str(failure)
    assert len(steps) == 1


def test_nothing_is_sent_when_no_time_is_left() -> None:
    failure, steps = played(left=lambda: 0.0)
    assert (failure.kind, steps) == ("timeout", [])


def test_each_try_gets_the_time_that_is_left() -> None:
    times = iter([9.0, 8.0, 7.0])
    _, steps = played(status(500), OK, left=lambda: next(times))
    assert [step.seconds for step in steps if isinstance(step, Post)] == [9.0, 7.0]


@pytest.mark.parametrize("again", [True, False], ids=["before the answer", "in the answer"])
def test_a_lost_connection_is_tried_again_only_if_nothing_had_come(again: bool) -> None:
    lost = Lost(because=SummaryFailed("gone", "network"), again=again)
    answer, steps = played(lost, OK)
    assert (answer == b"done") is again
    assert len(steps) == (3 if again else 1)


def test_a_broken_connection_is_made_again_at_once_and_then_after_a_while() -> None:
    lost = Lost(because=SummaryFailed("gone", "network"), again=True)
    assert pauses(played(lost, lost, OK)[1]) == [0.0, 0.5]
