from collections.abc import Callable
from pathlib import Path

from lowwater.core.entries import Appended, Opened
from lowwater.core.stored import Append
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.store_contract import add, said
from lowwater.testing.store_contract.samples import compaction, summarized


def in_steps(path: Path, use: Callable[[SqliteStore], object]) -> int:
    """How many steps of its machine SQLite takes for something, in hundreds; the same wherever it runs."""
    store = SqliteStore(path)
    hundreds = 0

    def count() -> int:
        nonlocal hundreds
        hundreds += 1
        return 0

    with store._connections.reading() as connection:
        connection.set_progress_handler(count, 100)
    use(store)
    store.close()
    return hundreds


def test_an_outline_and_a_compaction_cost_the_same_however_many_messages_there_are(tmp_path):
    outlines, appends = [], []
    for count in (100, 10_000):
        path = tmp_path / f"{count}.db"
        store = SqliteStore(path)
        version = add(store, "s", 0, Opened(at=0.0, model="m", vocabulary="w"))
        many = Appended(
            at=1.0,
            messages=tuple(said(f"message {number}").messages[0] for number in range(count)),
            tokens=(1,) * count,
        )
        version = add(store, "s", version, many)
        for _ in range(3):
            version = add(store, "s", version, summarized(count))
        assert [landmark.messages for landmark in store.outline("s").landmarks] == [0, count, count, count]
        store.close()
        outlines.append(in_steps(path, lambda store: store.outline("s")))
        now, last = version, summarized(count)
        appends.append(
            in_steps(
                path,
                lambda store, now=now, last=last: store.append(  # type: ignore[misc]
                    "s", now, Append(entries=(last,), events=(compaction(),))
                ),
            )
        )
    assert outlines[0] == outlines[1]
    assert appends[0] == appends[1]
