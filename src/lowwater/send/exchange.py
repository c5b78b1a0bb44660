"""Asking until there is an answer, as a generator of what it needs: retries only what is worth retrying."""

from collections.abc import Callable, Generator, Mapping

from msgspec import Struct

from lowwater.errors import SummaryFailed
from lowwater.send.refusing import failure_of, is_worth_retrying
from lowwater.send.waiting import asked_to_wait

TRIES = 3
_BACK_OFF = 0.5
"""Seconds before a busy provider is asked again, doubled the next time, unless it names its own.

A connection that broke is made again at once, and only then after a while.
"""


class Post(Struct, frozen=True, kw_only=True):
    """Send the body; whatever has not come after `seconds` is lost."""

    body: bytes
    seconds: float


class Pause(Struct, frozen=True, kw_only=True):
    """Wait."""

    seconds: float


class Reply(Struct, frozen=True, kw_only=True):
    """What the provider answered, whatever it says."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes


class Lost(Struct, frozen=True, kw_only=True):
    """There is no answer."""

    because: SummaryFailed
    again: bool = False
    """Whether nothing of an answer had come, so that asking again is not paying twice."""


Step = Post | Pause
Outcome = Reply | Lost | None


def exchange(body: bytes, left: Callable[[], float]) -> Generator[Step, Outcome, bytes]:
    """Return the body of a successful answer, or raise SummaryFailed; `left` tells how many seconds remain."""
    for tries in range(1, TRIES + 1):
        outcome = yield Post(body=body, seconds=_some(left()))
        match outcome:
            case Reply(status=200):
                return outcome.body
            case Reply():
                failure = failure_of(outcome.status, outcome.body)
                again = is_worth_retrying(outcome.status, failure)
                wait = asked_to_wait(outcome.headers)
            case Lost():
                failure, again = outcome.because, outcome.again
                wait = _BACK_OFF * (tries - 1)
            case _:
                raise AssertionError("a request was sent and nothing became of it")
        if not again or tries == TRIES:
            raise failure
        wait = _BACK_OFF * 2 ** (tries - 1) if wait is None else wait
        if wait >= left():
            raise SummaryFailed(f"{failure}; waiting {wait:g} s to ask again would take too long", "timeout")
        yield Pause(seconds=wait)
    raise AssertionError("the last try returns or raises")


def _some(seconds: float) -> float:
    if seconds <= 0:
        raise SummaryFailed("no time left to ask for a summary", "timeout")
    return seconds
