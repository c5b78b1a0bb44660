"""What a store has to do when one session begins as a copy of another."""

from lowwater.core.entries import Opened
from lowwater.core.stored import About, Append, Listed
from lowwater.errors import BadInput
from lowwater.protocols import Store
from lowwater.testing.store_contract.samples import (
    Check,
    Open,
    add,
    compaction,
    error,
    said,
    stale,
    summarized,
    texts,
    turn,
)


def _begin(store: Store) -> int:
    opened = Opened(at=0.5, model="m", vocabulary="w")
    version = add(store, "s", 0, opened, said("one"), said("two", at=2.0))
    new = Append(
        entries=(summarized(2),),
        record=turn(at=9.0),
        events=(compaction(at=8.0),),
        carried=b"carried",
        about=About(title="original", ended_at=1.0),
    )
    return store.append("s", version, new)


def _a_copy_has_the_ledger_and_not_the_accounts(reopen: Open) -> None:
    store = reopen()
    version = _begin(store)
    about = About(title="copy", parent="s")
    copied = store.copy("s", "t", about)
    assert copied > version
    original, copy = store.read("s"), store.read("t")
    assert (copy.version, copy.entries, copy.carried, copy.about) == (
        copied,
        original.entries,
        b"carried",
        about,
    )
    outlines = (store.outline("s"), store.outline("t"))
    assert outlines[0].landmarks == outlines[1].landmarks
    assert outlines[0].tokens == outlines[1].tokens == 6
    assert store.messages("t", 1, 9, version=copied) == store.messages("s", 1, 9, version=version)
    assert store.entries("t", 1, 3, version=copied) == store.entries("s", 1, 3, version=version)
    (account,) = store.accounts(["t"])
    assert (account.records, account.events) == ((), ())
    assert account.session == Listed(
        name="t",
        version=copied,
        entries=4,
        messages=2,
        turns=0,
        compactions=1,
        model="m",
        opened_at=0.5,
        changed_at=3.0,
        about=about,
    )
    assert {(hit.session, hit.number) for hit in store.search("one")} == {("s", 1), ("t", 1)}
    store.close()


def _a_copy_and_its_original_go_on_apart(reopen: Open) -> None:
    store = reopen()
    version = _begin(store)
    copied = store.copy("s", "t", About(parent="s"))
    add(store, "s", version, said("only s"))
    newer = add(store, "t", copied, said("only t"), said("one"))
    assert texts(store.read("s").entries) == ["one", "two", "only s"]
    assert texts(store.read("t").entries) == ["one", "two", "only t", "one"]
    assert texts(store.read("t", since=copied).entries) == ["only t", "one"]
    assert (store.outline("s").tokens, store.outline("t").tokens) == (12, 15)
    assert [one.message.text for one in store.messages("t", 2, 4, version=newer)] == ["two", "only t"]
    # The versions of one are not those of the other.
    assert stale(lambda: store.read("t", since=version)).found == newer
    store.close()


def _a_copy_outlives_its_original(reopen: Open) -> None:
    store = reopen()
    _begin(store)
    store.copy("s", "t", About(parent="s"))
    assert store.delete("s") is True
    assert texts(store.read("t").entries) == ["one", "two"]
    assert [(hit.session, hit.number) for hit in store.search("two")] == [("t", 2)]
    store.close()


def _an_original_outlives_its_copy(reopen: Open) -> None:
    store = reopen()
    _begin(store)
    store.copy("s", "t", About(parent="s"))
    assert store.delete("t") is True
    assert texts(store.read("s").entries) == ["one", "two"]
    assert [(hit.session, hit.number) for hit in store.search("two")] == [("s", 2)]
    assert len(store.accounts(["s"])[0].records) == 1
    store.close()


def _a_copy_of_nothing_and_a_copy_over_something_are_refused(reopen: Open) -> None:
    store = reopen()
    version = _begin(store)
    other = add(store, "t", 0, said("mine"))
    refused = stale(lambda: store.copy("s", "t", About()))
    assert (refused.session, refused.expected, refused.found) == ("t", 0, other)
    assert stale(lambda: store.copy("s", "s", About())).found == version
    assert texts(store.read("t").entries) == ["mine"]
    error(lambda: store.copy("nobody", "u", About()), BadInput)
    assert {one.name for one in store.sessions()} == {"s", "t"}
    store.close()


CHECKS: tuple[Check, ...] = (
    _a_copy_has_the_ledger_and_not_the_accounts,
    _a_copy_and_its_original_go_on_apart,
    _a_copy_outlives_its_original,
    _an_original_outlives_its_copy,
    _a_copy_of_nothing_and_a_copy_over_something_are_refused,
)
