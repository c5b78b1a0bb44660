"""What a store has to tell of its sessions: a list of them, and what each did and cost."""

from lowwater.core.entries import Checkpointed, ModelChanged, Opened, Rewound
from lowwater.core.events import Event, TurnRecord
from lowwater.core.stored import About, Append, Listed
from lowwater.testing.store_contract.samples import Check, Open, add, compaction, said, skip, summarized, turn


def _a_session_is_listed_with_all_that_is_told_of_it(reopen: Open) -> None:
    store = reopen()
    about = About(title="t", parent="p", ended_at=20.0, ended_because="done")
    opened = Opened(at=5.0, model="m", vocabulary="w")
    version = store.append("a", 0, Append(entries=(opened, said("one", at=6.0), said("two", at=6.5))))
    version = store.append(
        "a", version, Append(entries=(summarized(2, at=7.0),), events=(compaction(at=7.5),), record=turn(8.0))
    )
    version = store.append("a", version, Append(entries=(Rewound(at=9.0, to=2),), about=about))
    version = store.append("a", version, Append(entries=(ModelChanged(at=10.0, model="n"),)))
    version = store.append("a", version, Append(record=turn(at=12.0, model="n")))
    (listed,) = store.sessions()
    assert listed == Listed(
        name="a",
        version=version,
        entries=6,
        messages=2,
        turns=2,
        compactions=1,
        model="n",
        opened_at=5.0,
        changed_at=12.0,
        about=about,
    )
    store.close()


def _a_session_without_entries_is_listed_too(reopen: Open) -> None:
    store = reopen()
    version = store.append("s", 0, Append(about=About(title="t")))
    (listed,) = store.sessions()
    assert (listed.entries, listed.messages, listed.turns, listed.compactions, listed.model) == (
        0,
        0,
        0,
        0,
        "",
    )
    assert (listed.opened_at, listed.changed_at, listed.version) == (0.0, 0.0, version)
    store.append("s", version, Append(events=(skip(at=4.0),)))
    (listed,) = store.sessions()
    assert (listed.opened_at, listed.changed_at) == (4.0, 4.0)
    store.close()


def _sessions_are_listed_with_the_one_changed_last_first(reopen: Open) -> None:
    store = reopen()
    version = add(store, "a", 0, said("one", at=6.0))
    add(store, "b", 0, said("x", at=1.0))
    add(store, "c", 0, said("x", at=100.0))
    assert [one.name for one in store.sessions()] == ["c", "b", "a"]
    add(store, "a", version, Checkpointed(at=7.0, name="c"))
    assert [one.name for one in store.sessions()] == ["a", "c", "b"]
    store.close()


def _records_and_events_come_back_in_order(reopen: Open) -> None:
    store = reopen()
    bare = TurnRecord(at=6.0, model="n")
    version = store.append("s", 0, Append(record=turn(), events=(skip(at=4.0), compaction(at=4.5))))
    version = store.append("s", version, Append(entries=(said("one"),)))
    version = store.append("s", version, Append(events=(compaction(at=4.25, number=2),)))
    store.append("s", version, Append(record=bare, events=(skip(at=8.0),)))
    (account,) = store.accounts()
    assert account.records == (turn(), bare)
    events: tuple[Event, ...] = (
        skip(at=4.0),
        compaction(at=4.5),
        compaction(at=4.25, number=2),
        skip(at=8.0),
    )
    assert account.events == events
    assert account.turns_before == (0, 0, 1, 1), "told by what was stored first, whatever the clock said"
    store.close()


def _an_event_of_which_little_is_known_comes_back(reopen: Open) -> None:
    store = reopen()
    known = compaction()
    bare = type(known)(
        at=1.0,
        model="",
        mode="prune",
        mechanisms=(),
        because=known.because,
        before=0,
        after=0,
        items_before=0,
        items_after=0,
        first_changed=0,
        disturbed=0,
        cost=None,
    )
    given_up = type(skip())(at=2.0, because=known.because, prompt=0, rejected=known.rejected)
    store.append("s", 0, Append(events=(bare, given_up)))
    assert store.accounts()[0].events == (bare, given_up)
    store.close()


def _accounts_are_of_the_sessions_asked_for(reopen: Open) -> None:
    store = reopen()
    for name in ("a", "b", "c"):
        store.append(name, 0, Append(record=turn(model=name)))
    listed = store.sessions()
    assert [account.session for account in store.accounts()] == listed
    assert [account.session.name for account in store.accounts(["a", "nobody", "c", "a"])] == ["c", "a"]
    assert [account.records[0].model for account in store.accounts()] == ["c", "b", "a"]
    assert store.accounts([]) == []
    store.close()


CHECKS: tuple[Check, ...] = (
    _a_session_is_listed_with_all_that_is_told_of_it,
    _a_session_without_entries_is_listed_too,
    _sessions_are_listed_with_the_one_changed_last_first,
    _records_and_events_come_back_in_order,
    _an_event_of_which_little_is_known_comes_back,
    _accounts_are_of_the_sessions_asked_for,
)
