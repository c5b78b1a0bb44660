"""What a store that outlives its process has to do."""

from lowwater.core.stored import About, Append
from lowwater.testing.store_contract.samples import (
    Check,
    Open,
    add,
    compaction,
    said,
    skip,
    stale,
    summarized,
    texts,
    turn,
)


def _what_was_appended_is_there_when_opened_again(reopen: Open) -> None:
    store = reopen()
    new = Append(
        entries=(said("one"), said("two"), summarized(2)),
        record=turn(),
        events=(compaction(), skip()),
        carried=b"c",
        about=About(title="t"),
    )
    version = store.append("s", 0, new)
    outline, accounts, hits = store.outline("s"), store.accounts(), store.search("two")
    store.close()
    again = reopen()
    stored = again.read("s")
    assert (stored.version, stored.entries, stored.carried, stored.about) == (
        version,
        new.entries,
        b"c",
        About(title="t"),
    )
    assert (again.outline("s"), again.accounts(), again.search("two")) == (outline, accounts, hits)
    assert hits
    assert add(again, "s", version, said("three")) > version
    again.close()


def _two_openings_see_each_other(reopen: Open) -> None:
    one, other = reopen(), reopen()
    version = add(one, "s", 0, said("one"))
    assert texts(other.read("s").entries) == ["one"]
    newest = add(other, "s", version, said("two"))
    assert texts(one.read("s", since=version).entries) == ["two"]
    assert stale(lambda: add(one, "s", version, said("lost"))).found == newest
    assert [hit.number for hit in one.search("two")] == [2]
    copied = one.copy("s", "t", About(parent="s"))
    assert stale(lambda: other.copy("s", "t", About())).found == copied
    other.delete("s")
    assert one.read("s").version == 0
    assert add(one, "s", 0, said("new")) > copied
    assert texts(other.read("t").entries) == ["one", "two"]
    one.close()
    other.close()


CHECKS: tuple[Check, ...] = (
    _what_was_appended_is_there_when_opened_again,
    _two_openings_see_each_other,
)
