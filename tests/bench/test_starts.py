"""What a session's first call finds in the cache is told from the sessions around it, and from nothing it read itself."""

from typing import Any

import pytest

from bench.starts import SLIP, Begun, Starts
from lowwater.lab.audit.calls import Start
from tests.lab.audited_recordings import NOON, Talk

HOUR = 3_600.0


def begun(
    after: float, *, read: int, prompt: int = 42_000, folder: str = "cli", long: bool = True, **more: Any
) -> Begun:
    talk = Talk(at=NOON + after).says().call(prompt=prompt, read=read, long=long, **more)
    talk.tool("text", prompt=prompt + 1_000, read=prompt, long=long, **more)
    return Begun(agent="claude-code", folder=folder, calls=talk.calls())


def start_of(session: Begun, *others: Begun) -> Start:
    return Starts([*others, session]).of(session)


FIRST = begun(0, read=0)
SECOND = begun(600, read=16_000)


def test_within_the_lifetime_of_what_another_left_the_fixed_start_is_read():
    assert start_of(begun(1_200, read=0), FIRST, SECOND) == Start(fixed=16_000, read=16_000, slip=SLIP)


@pytest.mark.parametrize("read", [0, 16_000, 42_000])
def test_what_its_own_calls_read_is_not_looked_at(read: int):
    assert start_of(begun(1_200, read=read), FIRST, SECOND).read == 16_000


@pytest.mark.parametrize(
    ("after", "long", "read"),
    [(600 + 0.9 * HOUR, True, 16_000), (600 + 1.1 * HOUR, True, 0), (1_000, False, 0), (750, False, 16_000)],
)
def test_behind_its_lifetime_nothing_is_left_but_the_start_is_as_long(after: float, long: bool, read: int):
    found = start_of(begun(after, read=7, long=long), FIRST, SECOND)
    assert (found.fixed, found.read) == (16_000, read)


def test_a_start_that_others_found_at_any_time_is_shared_by_more_than_these():
    others = [begun(day * 24 * HOUR, read=20_000) for day in range(1, 4)]
    assert start_of(begun(5 * 24 * HOUR, read=0), *others).read == 20_000
    others = [begun(day * 24 * HOUR, read=20_000 if day == 1 else 0) for day in range(1, 4)]
    assert start_of(begun(5 * 24 * HOUR, read=0), *others).read == 0


def test_of_several_starts_the_one_of_prompts_of_the_same_size_counts():
    others = [begun(60.0 * at, read=16_000) for at in range(3)]
    others += [begun(300 + 60.0 * at, read=18_000, prompt=26_000) for at in range(3)]
    assert start_of(begun(900, read=0), *others).fixed == 16_000
    assert start_of(begun(900, read=0, prompt=26_100), *others).fixed == 18_000
    assert start_of(begun(900, read=0, prompt=35_000), *others).fixed == 18_000, "else the nearest in time"


def test_a_first_prompt_far_longer_than_others_goes_on_with_something():
    found = start_of(begun(900, read=0, prompt=113_000), FIRST, SECOND)
    assert (found.fixed, found.read) == (16_000, 113_000)
    whole = begun(300, read=41_900)
    assert start_of(begun(900, read=0), FIRST, SECOND, whole).fixed == 16_000, "and tells nothing of a start"


def test_where_its_folder_tells_nothing_other_folders_of_the_client_do():
    elsewhere = [begun(day * 24 * HOUR, read=20_000, folder="other") for day in range(3)]
    assert start_of(begun(9 * 24 * HOUR, read=0), *elsewhere).read == 20_000
    assert start_of(begun(0, read=0)) == Start(fixed=0, read=0, slip=SLIP)
