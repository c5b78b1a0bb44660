"""What every store has to do, as checks that need nothing but a store: parametrise a test over them.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check, tmp_path):
        check(lambda: MyStore(tmp_path / "store"))

A check is given a function that opens the same storage each time it is called, empty at first. `CHECKS` call it once;
`LASTING_CHECKS` are for stores that outlive their process, and call it again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread
from typing import TypeVar

from lowwater.errors import StaleLedger, StoreFailed, UnusableStore
from lowwater.ports import Store
from lowwater.values.entries import (
    Appended,
    Checkpointed,
    Compacted,
    Entry,
    Kept,
    Numbers,
    Opened,
    Summarized,
)
from lowwater.values.message import Message, Wire
from lowwater.values.parts import Text
from lowwater.values.turn_record import TurnRecord
from lowwater.values.usage import Usage

Open = Callable[[], Store]
Check = Callable[[Open], None]
Failed = TypeVar("Failed", bound=StoreFailed)


def said(text: str, at: float = 1.0) -> Appended:
    """Return an entry with one user message in a wire form of its own."""
    raw = b'{ "role":"user", "content":"%d" }' % len(text)
    message = Message(
        role="user", parts=(Text(text=text),), wire=Wire(format="openai_chat", raw=raw, exact=False)
    )
    return Appended(at=at, messages=(message,), tokens=(len(text),))


def texts(entries: Sequence[Entry]) -> list[str]:
    """Return the text of all messages in the entries."""
    return [message.text for entry in entries if isinstance(entry, Appended) for message in entry.messages]


def append_patiently(store: Store, session: str, entry: Entry) -> int:
    """Append as a session does: on StaleLedger read again and retry."""
    while True:
        try:
            return store.append(session, store.read(session).version, [entry])
        except StaleLedger:
            continue


def _error(use: Callable[[], object], kind: type[Failed]) -> Failed:
    try:
        use()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def _refused(use: Callable[[], object]) -> StaleLedger:
    return _error(use, StaleLedger)


def _an_unknown_session_is_empty(reopen: Open) -> None:
    store = reopen()
    stored = store.read("nobody")
    assert (stored.version, stored.entries, stored.record) == (0, (), None)
    assert store.records("nobody") == []
    assert store.sessions() == []
    assert store.delete("nobody") is False
    store.close()


def _what_was_appended_is_read_back_in_order(reopen: Open) -> None:
    store = reopen()
    opened = Opened(at=0.5, model="m", vocabulary="words")
    compacted = Compacted(
        at=3.0,
        mechanisms=("summarize",),
        stands=(
            Summarized(text="so far", role="user", sources=(Numbers(first=1, last=1),), tokens=2),
            Kept(numbers=Numbers(first=2, last=2)),
        ),
    )
    first = store.append("s", 0, [opened, said("one"), said("two", at=2.0)])
    second = store.append("s", first, [compacted])
    stored = store.read("s")
    assert 0 < first < second == stored.version
    assert stored.entries == (opened, said("one"), said("two", at=2.0), compacted)
    wires = [
        message.wire for entry in stored.entries if isinstance(entry, Appended) for message in entry.messages
    ]
    assert wires == [said("one").messages[0].wire, said("two").messages[0].wire]
    store.close()


def _reading_since_a_version_gives_only_what_came_after(reopen: Open) -> None:
    store = reopen()
    first = store.append("s", 0, [said("one")])
    store.append("other", 0, [said("elsewhere")])
    second = store.append("s", first, [said("two"), said("three")])
    assert texts(store.read("s", since=first).entries) == ["two", "three"]
    assert texts(store.read("s", until=first).entries) == ["one"]
    assert store.read("s", until=first).version == first
    assert store.read("s", until=second - 1).version == first
    assert store.read("s", since=second).entries == ()
    assert store.read("s", since=second).version == second
    store.close()


def _a_stale_version_is_refused_and_nothing_is_written(reopen: Open) -> None:
    store = reopen()
    first = store.append("s", 0, [said("one")])
    for expected in (0, first + 1):
        lost = partial(store.append, "s", expected, [said("lost")], TurnRecord(at=9.0, model="m"))
        stale = _refused(lost)
        assert (stale.session, stale.expected, stale.found) == ("s", expected, first)
    assert texts(store.read("s").entries) == ["one"]
    assert store.records("s") == []
    store.close()


def _nothing_to_keep_is_no_new_version(reopen: Open) -> None:
    store = reopen()
    assert store.append("s", 0, []) == 0
    assert store.sessions() == []
    version = store.append("s", 0, [said("one")])
    assert store.append("s", version, []) == version
    store.close()


def _records_come_back_and_the_newest_is_whole(reopen: Open) -> None:
    store = reopen()
    usage = Usage(uncached=1, cache_read=2, cache_write=3, cache_write_long=4, output=5)
    first = TurnRecord(at=1.0, model="m", usage=usage, cost=7, decision="keep", belief=b"b1", meter=b"m1")
    second = TurnRecord(at=2.0, model="n", expected=usage, cost=None, belief=b"\xff\x00", meter=b"m2")
    version = store.append("s", 0, [said("one")], first)
    assert store.read("s").record == first
    # A record alone is an append too: who has not seen it must not go on from an older belief.
    newest = store.append("s", version, [], second)
    assert newest > version
    assert store.read("s").record == second
    assert store.read("s", since=newest).record == second
    assert store.read("s", until=version).record == first.outdated()
    assert store.records("s") == [first.outdated(), second]
    store.close()


def _sessions_are_listed_with_the_one_changed_last_first(reopen: Open) -> None:
    store = reopen()
    version = store.append("a", 0, [Opened(at=5.0, model="m", vocabulary="w"), said("one", at=6.0)])
    store.append("b", 0, [said("x", at=1.0)])
    store.append("a", version, [Checkpointed(at=7.0, name="c")], TurnRecord(at=8.0, model="m"))
    listed = store.sessions()
    assert [one.name for one in listed] == ["a", "b"]
    a = listed[0]
    assert (a.entries, a.messages, a.turns, a.opened_at, a.changed_at) == (3, 1, 1, 5.0, 8.0)
    assert a.version == store.read("a").version
    store.close()


def _deleting_one_session_leaves_the_others_whole(reopen: Open) -> None:
    store = reopen()
    store.append("a", 0, [said("shared"), said("only a")], TurnRecord(at=1.0, model="m"))
    store.append("b", 0, [said("shared")])
    assert store.delete("a") is True
    assert store.read("a").entries == ()
    assert store.records("a") == []
    assert texts(store.read("b").entries) == ["shared"]
    assert [one.name for one in store.sessions()] == ["b"]
    assert store.delete("a") is False
    store.close()


def _a_session_begun_again_shares_no_version_with_the_deleted_one(reopen: Open) -> None:
    store = reopen()
    old = store.append("s", 0, [said("old")])
    store.delete("s")
    assert _refused(lambda: store.append("s", old, [said("lost")])).found == 0
    new = store.append("s", 0, [said("new")])
    assert new > old
    assert _refused(lambda: store.append("s", old, [said("lost")])).found == new
    assert _refused(lambda: store.read("s", since=old)).found == new
    store.close()


def _any_text_is_a_name_and_a_message(reopen: Open) -> None:
    store = reopen()
    strange = ("", "日本語 と 中文", "a/b%c'd\"; DROP TABLE sessions", "nul\x00byte", "\U0010ffff👩‍👩‍👧")
    for text in strange:
        store.append(text, 0, [said(text)])
    assert {one.name for one in store.sessions()} == set(strange)
    for text in strange:
        assert texts(store.read(text).entries) == [text]
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
        lambda: store.append("s", 0, [said("x")]),
        lambda: store.delete("s"),
        store.sessions,
    )
    for use in uses:
        assert "closed" in str(_error(use, UnusableStore))


def _what_was_appended_is_there_when_opened_again(reopen: Open) -> None:
    store = reopen()
    record = TurnRecord(at=1.0, model="m", belief=b"b", meter=b"m")
    version = store.append("s", 0, [said("one")], record)
    store.close()
    again = reopen()
    stored = again.read("s")
    assert (stored.version, texts(stored.entries), stored.record) == (version, ["one"], record)
    assert again.append("s", version, [said("two")]) > version
    again.close()


def _two_openings_see_each_other(reopen: Open) -> None:
    one, other = reopen(), reopen()
    version = one.append("s", 0, [said("one")])
    assert texts(other.read("s").entries) == ["one"]
    newest = other.append("s", version, [said("two")])
    assert texts(one.read("s", since=version).entries) == ["two"]
    assert _refused(lambda: one.append("s", version, [said("lost")])).found == newest
    other.delete("s")
    assert one.read("s").version == 0
    assert one.append("s", 0, [said("new")]) > newest
    one.close()
    other.close()


CHECKS: tuple[Check, ...] = (
    _an_unknown_session_is_empty,
    _what_was_appended_is_read_back_in_order,
    _reading_since_a_version_gives_only_what_came_after,
    _a_stale_version_is_refused_and_nothing_is_written,
    _nothing_to_keep_is_no_new_version,
    _records_come_back_and_the_newest_is_whole,
    _sessions_are_listed_with_the_one_changed_last_first,
    _deleting_one_session_leaves_the_others_whole,
    _a_session_begun_again_shares_no_version_with_the_deleted_one,
    _any_text_is_a_name_and_a_message,
    _threads_that_retry_lose_nothing,
    _a_closed_store_says_so,
)

LASTING_CHECKS: tuple[Check, ...] = (
    _what_was_appended_is_there_when_opened_again,
    _two_openings_see_each_other,
)
