"""The ledger is append-only; its view is a fold; nothing that was appended is ever lost."""

import msgspec
import pytest
from hypothesis import given

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Checkpointed,
    Compacted,
    Edit,
    Entry,
    KeptRange,
    ModelChanged,
    Numbers,
    Opened,
    PreambleChanged,
    Rewound,
    SummarizedSpan,
)
from lowwater.core.ledger import Ledger
from lowwater.core.messages import AnyPart, Image, Message, Text, ToolCall, ToolResult
from lowwater.core.view import Edited, Original, Summary
from lowwater.errors import IllegalEntry
from lowwater.testing.strategies import ledger_entries


def said(text: str, role: str = "user") -> Message:
    return Message(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]  # the tests' own literals


def appended(*texts: str) -> Appended:
    return Appended(
        at=0.0, messages=tuple(said(text) for text in texts), tokens=tuple(len(text) for text in texts)
    )


def compacted(*stands: KeptRange | AlteredMessage | SummarizedSpan) -> Compacted:
    return Compacted(at=0.0, mechanisms=("summarize",), items=stands)


def kept(first: int, last: int) -> KeptRange:
    return KeptRange(numbers=Numbers(first=first, last=last))


def summary(text: str, first: int, last: int) -> SummarizedSpan:
    return SummarizedSpan(
        text=text, role="user", sources=(Numbers(first=first, last=last),), tokens=len(text)
    )


def texts(ledger: Ledger) -> list[str]:
    return [message.text for message in ledger.view.messages]


def test_appending_shows_messages_and_counts_them() -> None:
    ledger = Ledger().extend(
        [Opened(at=0.0, model="m", vocabulary="o200k"), appended("one"), appended("two", "three")]
    )
    assert texts(ledger) == ["one", "two", "three"]
    assert ledger.view.tokens == 11
    assert (ledger.view.model, ledger.vocabulary) == ("m", "o200k")
    assert [item.number for item in ledger.view.items if isinstance(item, Original)] == [1, 2, 3]


def test_preamble_and_model_are_entries_too() -> None:
    ledger = Ledger().extend(
        [
            appended("a"),
            PreambleChanged(at=0.0, system=b'"s"', tools=b"[]", tokens=40),
            ModelChanged(at=0.0, model="n"),
        ]
    )
    assert (ledger.view.system, ledger.view.tools, ledger.view.model) == (b'"s"', b"[]", "n")
    assert ledger.view.total_tokens == 41


def test_a_compaction_changes_the_view_and_not_the_history() -> None:
    before = Ledger().append(appended("one", "two", "three", "four"))
    after = before.append(compacted(kept(1, 1), summary("sum", 2, 3), kept(4, 4)))
    assert texts(after) == ["one", "sum", "four"]
    assert after.view.tokens == len("onesumfour")
    assert [message.text for message in after.history()] == ["one", "two", "three", "four"]
    assert texts(before) == ["one", "two", "three", "four"]
    assert isinstance(after.view.items[1], Summary)
    assert after.view.shown_numbers() == {1, 2, 3, 4}


def test_an_altered_message_shows_its_placeholder_and_keeps_the_rest() -> None:
    image = Image(source="url", data="u")
    parts: tuple[AnyPart, ...] = (
        ToolResult(call_id="a", parts=(Text(text="long"), image)),
        ToolResult(call_id="b", parts=(Text(text="short"),)),
        Text(text="go on"),
    )
    ledger = Ledger().append(Appended(at=0.0, messages=(Message(role="user", parts=parts),), tokens=(9,)))
    edits = (
        Edit(path=(0, 0), by=Text(text="[elided]")),
        Edit(path=(0, 1), by=None),
        Edit(path=(2,), by=None),
    )
    ledger = ledger.append(compacted(AlteredMessage(number=1, edits=edits, tokens=4)))
    [item] = ledger.view.items
    assert isinstance(item, Edited)
    assert item.message.parts == (ToolResult(call_id="a", parts=(Text(text="[elided]"),)), parts[1])
    assert ledger.message(1).parts == parts


@pytest.mark.parametrize(
    "entry",
    [
        compacted(kept(1, 9)),
        compacted(AlteredMessage(number=5, edits=(), tokens=0)),
        compacted(AlteredMessage(number=1, edits=(Edit(path=(3,), by=None),), tokens=0)),
        compacted(AlteredMessage(number=1, edits=(Edit(path=(0, 0), by=None),), tokens=0)),
        compacted(summary("s", 1, 4)),
        Rewound(at=0.0, to=7),
        Rewound(at=0.0, to=-1),
        Appended(at=0.0, messages=(said("x"),), tokens=()),
    ],
    ids=["kept", "altered", "edit", "edit inside text", "sources", "rewind", "rewind before", "sizes"],
)
def test_an_entry_that_refers_to_nothing_is_refused_and_changes_nothing(entry: Entry) -> None:
    ledger = Ledger().append(appended("one", "two"))
    with pytest.raises(IllegalEntry):
        ledger.append(entry)
    assert texts(ledger.append(appended("three"))) == ["one", "two", "three"]


def test_what_a_rewind_discarded_does_not_come_back_by_another_rewind() -> None:
    ledger = Ledger().extend(
        [
            appended("one"),
            compacted(summary("s", 1, 1)),
            appended("wrong"),
            Rewound(at=0.0, to=2, discard_later=True),
        ]
    )
    ledger = ledger.extend([appended("right"), Rewound(at=0.0, to=1)])
    assert texts(ledger) == ["one", "right"]


def test_a_checkpoint_is_a_position_with_a_name() -> None:
    ledger = Ledger().extend([appended("one"), Checkpointed(at=0.0, name="here"), appended("two")])
    [saved] = ledger.saved
    assert (saved.name, saved.position) == ("here", 1)
    assert [message.text for message in ledger.view_before(saved).messages] == ["one"]


@given(ledger_entries())
def test_history_holds_every_message_whatever_happened(entries: list[Entry]) -> None:
    ledger = Ledger().extend(entries)
    all_messages = [message for entry in entries if isinstance(entry, Appended) for message in entry.messages]
    assert ledger.history() == all_messages
    assert ledger.view.tokens == sum(item.tokens for item in ledger.view.items)


@given(ledger_entries())
def test_the_view_at_every_position_is_the_fold_up_to_there(entries: list[Entry]) -> None:
    whole = Ledger().extend(entries)
    for position in range(len(entries) + 1):
        assert whole.view_at(position) == Ledger().extend(entries[:position]).view


@given(ledger_entries())
def test_entries_survive_storage(entries: list[Entry]) -> None:
    stored = msgspec.msgpack.encode(entries)
    restored = msgspec.msgpack.decode(stored, type=list[Entry])
    assert restored == entries
    assert Ledger().extend(restored).view == Ledger().extend(entries).view


def test_a_call_and_its_result_survive_storage_with_their_wire_form() -> None:
    from lowwater.core.formats.codec import decode_messages

    [message] = decode_messages([b'{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","x":1,'
                                 b'"function":{"name":"f","arguments":"{}"}}]}'])  # fmt: skip
    entry = Appended(at=1.5, messages=(message,), tokens=(3,))
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=Appended)
    assert restored.messages[0].wire == message.wire
    assert restored.messages[0].calls == (ToolCall(id="a", name="f", arguments="{}"),)
