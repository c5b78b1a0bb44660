"""An append-only list is a value: it grows at its end, and what it was before stays as it was."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.sequences import AppendOnlyList


@given(st.lists(st.lists(st.integers(), max_size=5), max_size=20), st.data())
def test_appending_never_changes_an_older_list(batches: list[list[int]], data: st.DataObject) -> None:
    known: list[tuple[AppendOnlyList[int], list[int]]] = [(AppendOnlyList(), [])]
    for batch in batches:
        chain, items = data.draw(st.sampled_from(known))
        known.append((chain.extend(batch), items + batch))
    for chain, items in known:
        assert list(chain) == items
        assert len(chain) == len(items)
        assert chain == AppendOnlyList(items)
        start, stop, step = data.draw(st.tuples(*[st.none() | st.integers(-9, 9)] * 3))
        assert chain[start : stop : step or None] == items[start : stop : step or None]


def test_growth_shares_storage_and_a_fork_does_not() -> None:
    base = AppendOnlyList([1, 2])
    grown, fork = base.append(3), base.append(4)
    assert grown.extends(base)
    assert not fork.extends(base)
    assert (list(grown), list(fork)) == ([1, 2, 3], [1, 2, 4])


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_beyond_its_own_length_is_an_error_even_if_the_storage_is_longer(index: int) -> None:
    chain = AppendOnlyList([1, 2, 3])
    chain.append(4)
    with pytest.raises(IndexError):
        chain[index]


def test_threads_that_append_to_one_list_each_get_their_own() -> None:
    base: AppendOnlyList[tuple[int, int]] = AppendOnlyList()
    grown: dict[int, AppendOnlyList[tuple[int, int]]] = {}
    start = threading.Barrier(8)

    def grow(me: int) -> None:
        start.wait()
        chain = base
        for step in range(500):
            chain = chain.append((me, step))
        grown[me] = chain

    threads = [threading.Thread(target=grow, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for me, chain in grown.items():
        assert list(chain) == [(me, step) for step in range(500)]


def test_a_list_that_is_iterated_ends_where_it_did_though_its_storage_grows() -> None:
    chain, seen = AppendOnlyList([1, 2]), []
    for item in chain:
        chain.append(item)
        seen.append(item)
    assert seen == [1, 2]
