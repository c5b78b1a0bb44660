"""Whole sessions as files: nothing is lost, and nothing secret is left if it is not to be."""

import msgspec
import pytest
from hypothesis import given, settings

from lowwater.core.entries import (
    AlteredMessage,
    Appended,
    Compacted,
    Edit,
    Entry,
    Numbers,
    Opened,
    PreambleChanged,
    SummarizedSpan,
)
from lowwater.core.formats.files import (
    WholeSession,
    conceal_session,
    is_session_file,
    read_session,
    session_lines,
)
from lowwater.core.messages import Message, Text, Wire
from lowwater.core.stored import About
from lowwater.errors import BadInput
from lowwater.testing.store_contract.samples import compaction, said, skip, turn
from lowwater.testing.strategies.ledgers import ledger_entries

SECRET = "sk-ant-api03-Qm9vR2x1ZVphcDdYeTJLd1AzTnQ4VnM1Y0RmSGpM"
OPENED = Opened(at=0.0, model="m", vocabulary="words")


def written(session: WholeSession) -> bytes:
    return b"\n".join(session_lines(session))


@settings(max_examples=60)
@given(ledger_entries())
def test_what_is_written_is_read_back_to_the_last_byte(entries: list[Entry]) -> None:
    for entry in entries:
        if isinstance(entry, Appended):
            assert all(message.digest for message in entry.messages)
    session = WholeSession(
        name="a\nb “ü”",
        about=About(title="t", source="s", parent="p", ended_at=1.5, ended_because="compression"),
        entries=tuple(entries),
        records=(turn(), turn(6.0)),
        events=(compaction(), skip()),
        carried=b"\x00\xff",
    )
    data = written(session)
    assert is_session_file(data)
    again = read_session(data)
    assert again == session
    assert written(again) == data


def test_a_digest_in_a_file_is_not_believed() -> None:
    first, second = said("one"), said("two")
    lines = list(session_lines(WholeSession(name="x", entries=(OPENED, first, second))))
    lies = lines[2].replace(b'"memo":""', b'"memo":"%s"' % b"AAAA")
    assert lies != lines[2]
    read = read_session(b"\n".join([*lines[:2], lies, lines[3]]))
    assert read.entries == (OPENED, first, second)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"role":"user"}', b"{", b"\xff\xfe"])
def test_other_files_are_no_sessions(data: bytes) -> None:
    assert not is_session_file(data)


def test_entries_that_do_not_fit_together_are_refused() -> None:
    stands = (SummarizedSpan(text="x", role="user", sources=(Numbers(first=1, last=9),), tokens=1),)
    beyond = Compacted(
        at=1.0, mechanisms=("summarize",), items=(*stands, AlteredMessage(number=9, edits=(), tokens=1))
    )
    with pytest.raises(BadInput, match="do not fit together"):
        read_session(written(WholeSession(name="x", entries=(OPENED, beyond))))


def test_secrets_are_concealed_wherever_they_stand() -> None:
    raw = b'{"role":"user","content":"hello","note":"%s"}' % SECRET.encode()
    outside = Message(role="user", parts=(Text(text="hello"),), wire=Wire(format="openai_chat", raw=raw))
    edit = Edit(path=(0,), by=Text(text=f"[elided: {SECRET}]"))
    session = WholeSession(
        name="x",
        about=About(title=f"key {SECRET}"),
        entries=(
            OPENED,
            Appended(at=1.0, messages=(outside,), tokens=(1,)),
            said(f"my key is {SECRET}"),
            PreambleChanged(at=1.0, system=b'"use %s"' % SECRET.encode(), tools=b'[{"name":"t"}]'),
            Compacted(
                at=2.0,
                mechanisms=("elide",),
                items=(
                    AlteredMessage(number=1, edits=(edit,), tokens=1),
                    SummarizedSpan(
                        text=f"had {SECRET}", role="user", sources=(Numbers(first=2, last=2),), tokens=1
                    ),
                ),
            ),
        ),
        events=(
            msgspec.structs.replace(
                compaction(),
                rejected=(msgspec.structs.replace(compaction().rejected[0], first_missing=(SECRET,)),),
            ),
        ),
        carried=b"says " + SECRET.encode(),
    )
    done = conceal_session(session)
    assert done.changed == 6
    assert SECRET.encode() in msgspec.msgpack.encode(session)
    assert SECRET.encode() not in msgspec.msgpack.encode(done.session)
    assert read_session(written(done.session)) == done.session


def test_a_session_without_secrets_stays_as_it_is() -> None:
    session = WholeSession(
        name="x", entries=(OPENED, said("nothing to hide")), events=(skip(),), carried=b"c"
    )
    assert conceal_session(session).session is session
