"""What a store has to give back of a session: all, what is new, an outline, or a part."""

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
from lowwater.core.stored import About, Append, Landmark, Outline, Stored
from lowwater.errors import StaleLedger
from lowwater.protocols import Store
from lowwater.testing.store_contract.samples import Check, Open, add, said, stale, summarized, texts

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
    # Whoever has seen an older version may ask as well: positions stay.
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
    """What the session `s` says to a version that is none of it."""
    return [
        stale(lambda: add(store, "s", gone, said("lost"))),
        stale(lambda: store.read("s", since=gone)),
        stale(lambda: store.entries("s", 0, 1, version=gone)),
        stale(lambda: store.messages("s", 1, 2, version=gone)),
    ]


CHECKS: tuple[Check, ...] = (
    _an_unknown_session_is_empty,
    _what_was_appended_is_read_back_in_order,
    _reading_since_a_version_gives_only_what_came_after,
    _an_outline_says_what_reading_shows,
    _entries_are_found_by_position,
    _messages_are_found_by_number,
    _many_entries_and_messages_come_in_order,
    _a_version_that_is_gone_is_refused_wherever_it_is_named,
)
