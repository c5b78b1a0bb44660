"""Checks of what a store does with a session: append, read, copy, delete, and still have it when opened again."""

from collections.abc import Callable
from functools import partial
from threading import Thread

from lowwater.core.entries import (
    Appended,
    Checkpointed,
    Entry,
    ModelChanged,
    Opened,
    PreambleChanged,
    Rewound,
)
from lowwater.core.ledger import Numbered
from lowwater.core.stored import About, Append, Landmark, Listed, Outline, Stored
from lowwater.errors import BadInput, IllegalEntry, StaleLedger, UnusableStore
from lowwater.protocols import Store
from lowwater.testing.store_contract.samples import (
    Check,
    Open,
    add,
    append_patiently,
    compaction,
    error,
    said,
    skip,
    stale,
    summarized,
    texts,
    turn,
)

_TWO = Appended(at=4.0, messages=(*said("three").messages, *said("four").messages), tokens=(3, 4))
_LEDGER: tuple[Entry, ...] = (
    Opened(at=0.5, model="m", vocabulary="words"),
    PreambleChanged(at=0.75, system=b'"be \xc3\xa9"', tools=b"[]", tokens=2),
    said("one"),
    said("two", at=2.0),
    Checkpointed(at=2.5, name="before-compaction-1"),
    summarized(2),
    _TWO,
    Appended(at=4.5, messages=(), tokens=()),
    ModelChanged(at=5.0, model="n"),
    Rewound(at=6.0, to=4, discard_later=True),
    said("one", at=7.0),
)


# Appending


def _a_stale_version_is_refused_and_nothing_is_written(reopen: Open) -> None:
    store = reopen()
    first = add(store, "s", 0, said("one"))
    lost = Append(
        entries=(said("lost"),),
        record=turn(),
        events=(compaction(),),
        carried=b"lost",
        about=About(title="lost"),
    )
    for expected in (0, first + 1):
        refused = stale(partial(store.append, "s", expected, lost))
        assert (refused.session, refused.expected, refused.found) == ("s", expected, first)
    stored = store.read("s")
    assert (texts(stored.entries), stored.carried, stored.about) == (["one"], b"", About())
    assert (store.accounts()[0].records, store.accounts()[0].events) == ((), ())
    assert store.search("lost") == []
    assert stale(partial(store.append, "nobody", 1, lost)).found == 0
    assert [one.name for one in store.sessions()] == ["s"]
    store.close()


def _nothing_to_keep_is_no_new_version(reopen: Open) -> None:
    store = reopen()
    assert store.append("s", 0, Append()) == 0
    assert store.sessions() == []
    version = add(store, "s", 0, said("one"))
    assert store.append("s", version, Append()) == version
    assert stale(lambda: store.append("s", version + 1, Append())).found == version
    store.close()


def _each_thing_alone_is_an_append(reopen: Open) -> None:
    store = reopen()
    version = 0
    alone = (
        Append(record=turn()),
        Append(events=(compaction(),)),
        Append(carried=b""),
        Append(about=About()),
    )
    for new in alone:
        newer = store.append("s", version, new)
        assert newer > version
        assert store.outline("s").version == newer
        version = newer
    store.close()


def _what_is_none_stays_as_it_was(reopen: Open) -> None:
    store = reopen()
    about = About(title="任務", source="gateway", parent="p", ended_at=9.5, ended_because="split")
    version = store.append("s", 0, Append(entries=(said("one"),), carried=b"\xff\x00", about=about))
    version = add(store, "s", version, said("two"))
    for has in (store.read("s"), store.read("s", since=version), store.outline("s")):
        assert (has.carried, has.about) == (b"\xff\x00", about)
    version = store.append("s", version, Append(carried=b"newer"))
    assert (store.outline("s").carried, store.outline("s").about) == (b"newer", about)
    store.append("s", version, Append(about=About(title="other"), carried=b""))
    assert (store.outline("s").carried, store.outline("s").about) == (b"", About(title="other"))
    store.close()


def _a_message_without_a_size_is_refused_and_nothing_is_written(reopen: Open) -> None:
    store = reopen()
    unsized = Appended(at=1.0, messages=said("x").messages, tokens=())
    error(lambda: add(store, "s", 0, said("before it"), unsized), IllegalEntry)
    assert store.sessions() == []
    store.close()


def _any_text_is_a_name_and_a_message(reopen: Open) -> None:
    store = reopen()
    strange = ("", "日本語 と 中文", "a/b%c'd\"; DROP TABLE sessions", "nul\x00byte", "\U0010ffff👩‍👩‍👧")
    for text in strange:
        new = Append(entries=(said(text),), record=turn(model=text), about=About(title=text, parent=text))
        store.append(text, 0, new)
    assert {one.name for one in store.sessions()} == set(strange)
    for text in strange:
        stored = store.read(text)
        assert texts(stored.entries) == [text]
        assert stored.about == About(title=text, parent=text)
        (account,) = store.accounts([text])
        assert account.records == (turn(model=text),)
    store.close()


def _threads_that_retry_lose_nothing(reopen: Open) -> None:
    store = reopen()
    names = [f"s{number % 2}" for number in range(4)]

    def write(writer: int) -> None:
        for number in range(8):
            append_patiently(store, names[writer], said(f"{writer}:{number}"))

    threads = [Thread(target=write, args=(writer,)) for writer in range(len(names))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in set(names):
        kept = texts(store.read(session).entries)
        writers = [writer for writer, name in enumerate(names) if name == session]
        assert sorted(kept) == sorted(f"{writer}:{number}" for writer in writers for number in range(8))
        for writer in writers:
            mine = [text for text in kept if text.startswith(f"{writer}:")]
            assert mine == [f"{writer}:{number}" for number in range(8)]
    store.close()


def _a_closed_store_says_so(reopen: Open) -> None:
    store = reopen()
    store.close()
    store.close()
    uses: tuple[Callable[[], object], ...] = (
        lambda: store.read("s"),
        lambda: store.outline("s"),
        lambda: store.entries("s", 0, 1, version=0),
        lambda: store.messages("s", 1, 2, version=0),
        lambda: add(store, "s", 0, said("x")),
        lambda: store.copy("s", "t", About()),
        lambda: store.delete("s"),
        store.sessions,
        store.accounts,
        lambda: store.search("x"),
    )
    for use in uses:
        assert "closed" in str(error(use, UnusableStore))


APPENDING: tuple[Check, ...] = (
    _a_stale_version_is_refused_and_nothing_is_written,
    _nothing_to_keep_is_no_new_version,
    _each_thing_alone_is_an_append,
    _what_is_none_stays_as_it_was,
    _a_message_without_a_size_is_refused_and_nothing_is_written,
    _any_text_is_a_name_and_a_message,
    _threads_that_retry_lose_nothing,
    _a_closed_store_says_so,
)


# Reading


def _an_unknown_session_is_empty(reopen: Open) -> None:
    store = reopen()
    assert store.read("nobody") == Stored()
    assert store.outline("nobody") == Outline()
    assert store.entries("nobody", 0, 10, version=0) == []
    assert store.messages("nobody", 1, 10, version=0) == []
    assert store.sessions() == []
    assert store.accounts() == []
    assert store.accounts(["nobody"]) == []
    assert store.search("anything") == []
    assert store.search("anything", session="nobody") == []
    assert store.delete("nobody") is False
    store.close()


def _what_was_appended_is_read_back_in_order(reopen: Open) -> None:
    store = reopen()
    first = add(store, "s", 0, *_LEDGER[:5])
    second = add(store, "s", first, *_LEDGER[5:])
    stored = store.read("s")
    assert 0 < first < second == stored.version
    assert stored.entries == _LEDGER
    assert _wires(stored.entries) == _wires(_LEDGER)
    store.close()


def _wires(entries: tuple[Entry, ...]) -> list[object]:
    return [message.wire for entry in entries if isinstance(entry, Appended) for message in entry.messages]


def _reading_since_a_version_gives_only_what_came_after(reopen: Open) -> None:
    store = reopen()
    first = add(store, "s", 0, said("one"))
    add(store, "other", 0, said("elsewhere"))
    second = add(store, "s", first, said("two"), said("three"))
    third = store.append("s", second, Append(carried=b"c"))
    assert texts(store.read("s", since=first).entries) == ["two", "three"]
    assert texts(store.read("s", until=first).entries) == ["one"]
    assert store.read("s", until=first).version == first
    assert store.read("s", until=second - 1).version == first
    assert texts(store.read("s", since=first, until=second).entries) == ["two", "three"]
    assert store.read("s", since=second) == Stored(version=third, carried=b"c")
    assert store.read("s", since=third) == Stored(version=third, carried=b"c")
    store.close()


def _an_outline_says_what_reading_shows(reopen: Open) -> None:
    store = reopen()
    version, about = 0, About(title="t", ended_at=3.0)
    for entry in _LEDGER[:6]:
        version = add(store, "s", version, entry)
    version = store.append("s", version, Append(entries=_LEDGER[6:], carried=b"c", about=about))
    stored, outline = store.read("s"), store.outline("s")
    landmarks, messages, tokens = [], 0, 0
    for position, entry in enumerate(stored.entries):
        if isinstance(entry, Appended):
            messages += len(entry.messages)
            tokens += sum(entry.tokens)
        else:
            kind = str(entry.__struct_config__.tag)
            landmarks.append((position, kind, entry.at, messages, tokens))
    assert [_fields(landmark) for landmark in outline.landmarks] == landmarks
    assert (outline.entries, outline.messages, outline.tokens) == (len(_LEDGER), messages, tokens)
    assert (outline.version, outline.carried, outline.about) == (version, b"c", about)
    store.close()


def _fields(landmark: Landmark) -> tuple[int, str, float, int, int]:
    return (landmark.position, landmark.kind, landmark.at, landmark.messages, landmark.tokens)


def _entries_are_found_by_position(reopen: Open) -> None:
    store = reopen()
    add(store, "other", 0, said("elsewhere"), said("far away"))
    first = add(store, "s", 0, *_LEDGER[:3])
    second = add(store, "s", first, *_LEDGER[3:])
    length = len(_LEDGER)
    ranges = [(0, length), (0, 1), (2, 5), (length - 1, length), (length - 1, length + 9)]
    for begin, end in [*ranges, (0, 0), (5, 5), (5, 2), (length, length + 3)]:
        assert store.entries("s", begin, end, version=second) == list(_LEDGER[begin:end]), (begin, end)
    # A caller that knows only an older version may ask, too: positions never change.
    assert store.entries("s", 1, 3, version=first) == list(_LEDGER[1:3])
    store.close()


def _messages_are_found_by_number(reopen: Open) -> None:
    store = reopen()
    add(store, "other", 0, said("elsewhere"), said("two"))
    first = add(store, "s", 0, *_LEDGER[:3])
    second = add(store, "s", first, *_LEDGER[3:])
    all_messages = [
        Numbered(message=message, tokens=tokens)
        for entry in _LEDGER
        if isinstance(entry, Appended)
        for message, tokens in zip(entry.messages, entry.tokens, strict=True)
    ]
    count = len(all_messages)
    ranges = [(1, count + 1), (1, 2), (2, 5), (count, count + 1), (count, count + 9)]
    for begin, end in [*ranges, (1, 1), (3, 3), (4, 2), (count + 1, count + 5)]:
        found = store.messages("s", begin, end, version=second)
        assert found == all_messages[begin - 1 : max(end - 1, 0)], (begin, end)
        assert [one.message.wire for one in found] == [
            one.message.wire for one in all_messages[begin - 1 : max(end - 1, 0)]
        ]
    assert store.messages("s", 1, 2, version=first) == all_messages[:1]
    store.close()


def _many_entries_and_messages_come_in_order(reopen: Open) -> None:
    store = reopen()
    count = 1_203
    version = add(store, "s", 0, *(said(f"number {number}") for number in range(1, count + 1)))
    expected = [f"number {number}" for number in range(1, count + 1)]
    assert texts(store.read("s").entries) == expected
    assert texts(store.entries("s", 0, count, version=version)) == expected
    found = store.messages("s", 1, count + 1, version=version)
    assert [one.message.text for one in found] == expected
    store.close()


def _a_version_that_is_gone_is_refused_wherever_it_is_named(reopen: Open) -> None:
    store = reopen()
    old = add(store, "s", 0, said("old"))
    elsewhere = add(store, "other", 0, said("old"))
    store.delete("s")
    for gone in (old, elsewhere):
        assert [one.found for one in _refusals(store, gone)] == [0, 0, 0, 0]
    new = add(store, "s", 0, said("new"))
    assert new > old
    for gone in (old, elsewhere, new + 1):
        refused = _refusals(store, gone)
        assert [(one.session, one.expected, one.found) for one in refused] == [("s", gone, new)] * 4
    assert texts(store.read("s").entries) == ["new"]
    store.close()


def _refusals(store: Store, gone: int) -> list[StaleLedger]:
    """Return the errors for each use of the session `s` with a version that it does not have."""
    return [
        stale(lambda: add(store, "s", gone, said("lost"))),
        stale(lambda: store.read("s", since=gone)),
        stale(lambda: store.entries("s", 0, 1, version=gone)),
        stale(lambda: store.messages("s", 1, 2, version=gone)),
    ]


READING: tuple[Check, ...] = (
    _an_unknown_session_is_empty,
    _what_was_appended_is_read_back_in_order,
    _reading_since_a_version_gives_only_what_came_after,
    _an_outline_says_what_reading_shows,
    _entries_are_found_by_position,
    _messages_are_found_by_number,
    _many_entries_and_messages_come_in_order,
    _a_version_that_is_gone_is_refused_wherever_it_is_named,
)


# Copying


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
    # A copy has versions of its own.
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


COPYING: tuple[Check, ...] = (
    _a_copy_has_the_ledger_and_not_the_accounts,
    _a_copy_and_its_original_go_on_apart,
    _a_copy_outlives_its_original,
    _an_original_outlives_its_copy,
    _a_copy_of_nothing_and_a_copy_over_something_are_refused,
)


# Deleting


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
        add(store, name, 0, said("shared words"), said(f"alone {name}"))
    assert store.delete("a", "nobody", "b", "a") is True
    assert [listed.name for listed in store.sessions()] == ["c"]
    assert [(hit.session, hit.number) for hit in store.search("shared alone")] == [("c", 2), ("c", 1)]
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


DELETING: tuple[Check, ...] = (
    _deleting_one_session_leaves_the_others_whole,
    _deletion_takes_the_hits_away,
    _several_sessions_go_in_one_call,
    _a_session_begun_again_has_nothing_of_the_deleted_one,
)


# Opening again


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


LASTING: tuple[Check, ...] = (
    _what_was_appended_is_there_when_opened_again,
    _two_openings_see_each_other,
)
