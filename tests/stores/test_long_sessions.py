"""A stored session costs what its view costs, however long its history is."""

from collections.abc import Callable
from typing import cast

import pytest

from bench.long_sessions import MODEL, QUIET, History, build, commits, take_turn, turns
from lowwater import Lowwater
from lowwater.protocols import Store
from lowwater.session.factories import resolve_store


class Counting:
    """A store that counts what is read from it, in messages and entries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.read: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._store, name)
        if name not in ("messages", "entries"):
            return method

        def counted(*arguments: object, **options: object) -> object:
            found = cast("list[object]", method(*arguments, **options))
            self.read.append(len(found))
            return found

        return counted


def read_by_a_turn(history: History, number: int) -> list[int]:
    store = resolve_store(history.address)
    counting = Counting(store)
    take_turn(Lowwater(model=MODEL, settings=QUIET, store=cast("Store", counting)), history.name, number)
    store.close()
    return counting.read


def test_a_turn_reads_as_much_of_a_long_history_as_of_a_short_one(tmp_path):
    short, long = build(1_500, tmp_path), build(3_500, tmp_path)
    for number in range(2):
        read = read_by_a_turn(long, number)
        assert read == read_by_a_turn(short, number)
        assert 200 < sum(read) < 2_000


@pytest.mark.full
def test_a_turn_after_a_hundred_thousand_messages_takes_what_it_takes_after_a_thousand(tmp_path):
    short, long = turns([build(length, tmp_path) for length in (1_000, 100_000)], rounds=15)
    assert long.usual.cpu < 2 * short.usual.cpu
    assert long.first.cpu < 2 * short.first.cpu
    done = commits(long.history, rounds=30)
    assert done.stood_for > 100_000
    assert done.compaction.cpu < 2 * done.message.cpu
