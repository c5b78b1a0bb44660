"""What a store has to do when it is appended to."""

from collections.abc import Callable
from functools import partial
from threading import Thread

from lowwater.core.entries import Appended
from lowwater.core.stored import About, Append
from lowwater.errors import IllegalEntry, UnusableStore
from lowwater.testing.store_contract.samples import (
    Check,
    Open,
    add,
    append_patiently,
    compaction,
    error,
    said,
    stale,
    texts,
    turn,
)


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


CHECKS: tuple[Check, ...] = (
    _a_stale_version_is_refused_and_nothing_is_written,
    _nothing_to_keep_is_no_new_version,
    _each_thing_alone_is_an_append,
    _what_is_none_stays_as_it_was,
    _a_message_without_a_size_is_refused_and_nothing_is_written,
    _any_text_is_a_name_and_a_message,
    _threads_that_retry_lose_nothing,
    _a_closed_store_says_so,
)
