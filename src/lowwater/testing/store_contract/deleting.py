"""What a store has to do when a session is deleted."""

from lowwater.core.stored import About, Append, Outline, Stored
from lowwater.testing.store_contract.samples import Check, Open, add, compaction, said, stale, texts, turn


def _deleting_one_session_leaves_the_others_whole(reopen: Open) -> None:
    store = reopen()
    whole = Append(
        entries=(said("shared"), said("only a")),
        record=turn(),
        events=(compaction(),),
        carried=b"c",
        about=About(title="t"),
    )
    store.append("a", 0, whole)
    version = store.append("b", 0, Append(entries=(said("shared"),), record=turn(), events=(compaction(),)))
    assert store.delete("a") is True
    assert store.read("a") == Stored()
    assert store.outline("a") == Outline()
    assert store.accounts(["a"]) == []
    assert texts(store.read("b").entries) == ["shared"]
    assert [one.message.text for one in store.messages("b", 1, 2, version=version)] == ["shared"]
    (account,) = store.accounts()
    assert (account.session.name, len(account.records), len(account.events)) == ("b", 1, 1)
    assert store.delete("a") is False
    store.close()


def _deletion_takes_the_hits_away(reopen: Open) -> None:
    store = reopen()
    add(store, "a", 0, said("shared words"), said("lonely words"))
    add(store, "b", 0, said("shared words"))
    store.delete("a")
    assert store.search("lonely") == []
    assert [(hit.session, hit.number) for hit in store.search("shared")] == [("b", 1)]
    add(store, "a", 0, said("lonely again"))
    assert [(hit.session, hit.number) for hit in store.search("lonely")] == [("a", 1)]
    store.close()


def _several_sessions_go_in_one_call(reopen: Open) -> None:
    store = reopen()
    for name in ("a", "b", "c"):
        add(store, name, 0, said("shared words"), said(f"only {name}"))
    assert store.delete("a", "nobody", "b", "a") is True
    assert [listed.name for listed in store.sessions()] == ["c"]
    assert [(hit.session, hit.number) for hit in store.search("shared only")] == [("c", 2), ("c", 1)]
    assert store.delete("a", "b") is False
    store.close()


def _a_session_begun_again_has_nothing_of_the_deleted_one(reopen: Open) -> None:
    store = reopen()
    old = store.append(
        "s", 0, Append(entries=(said("old"),), record=turn(), carried=b"c", about=About(title="t"))
    )
    store.delete("s")
    assert stale(lambda: add(store, "s", old, said("lost"))).found == 0
    new = add(store, "s", 0, said("new"))
    assert new > old
    stored = store.read("s")
    assert (texts(stored.entries), stored.carried, stored.about) == (["new"], b"", About())
    assert store.accounts(["s"])[0].records == ()
    assert store.outline("s").messages == 1
    store.close()


CHECKS: tuple[Check, ...] = (
    _deleting_one_session_leaves_the_others_whole,
    _deletion_takes_the_hits_away,
    _several_sessions_go_in_one_call,
    _a_session_begun_again_has_nothing_of_the_deleted_one,
)
