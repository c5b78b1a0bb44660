"""A provider's own compaction block is kept byte for byte and stands for everything before it (`native`)."""

from typing import Any

import msgspec
import pytest

from lowwater.assemble.legal import mend, refuse_illegal
from lowwater.assemble.seams import seams_of
from lowwater.compact import native
from lowwater.compact.making import edit
from lowwater.testing.views import Script, making, size
from lowwater.values.entries import Appended, Compacted, Edit
from lowwater.values.ledger import Ledger
from lowwater.values.message import Message
from lowwater.values.parts import Opaque
from lowwater.values.view import Item, Original, Summary, stands_of
from lowwater.wire.formats import decode_messages, encode_messages

BLOCK = (
    b'{"type": "compaction","content":"What was done so far: \\u00fcber 12 files.",  '
    b'"encrypted_content":"b3BhcXVl","signature":"c2lnbmVk","tool_changes":[ ],"new_field":1.0}'
)
FAILED = b'{"type":"compaction","content":null}'


def answer(block: bytes = BLOCK, *, alone: bool = False, thinks: bool = False) -> Message:
    thought = b'{"type":"thinking","thinking":"Hm.","signature":"s"}'
    said = [
        *([thought] if thinks else []),
        block,
        *([] if alone else [b'{"type":"text","text":"On we go."}']),
    ]
    raw = b'{"role":"assistant","content":[' + b" , ".join(said) + b"]}"
    return decode_messages([raw], "anthropic")[0]


def talk(*behind: Message, user: str = "") -> list[Message]:
    script = Script("anthropic").user("Look into everything.")
    for step in range(12):
        script.calls("bash", {"command": str(step)}, f"output {step} " * 40)
    more = Script("anthropic").user(user).messages() if user else []
    return [*script.messages(), *behind, *more]


def ledger_of(messages: list[Message]) -> Ledger:
    return Ledger().append(
        Appended(at=0.0, messages=tuple(messages), tokens=tuple(size(message) for message in messages))
    )


def absorbed(messages: list[Message]) -> list[Item] | None:
    return native.absorb(ledger_of(messages).view.items, making())


def test_the_block_is_opaque_counts_and_leaves_byte_for_byte() -> None:
    message = answer(thinks=True)
    assert [part.kind for part in message.parts] == ["thinking", "opaque", "text"]
    assert BLOCK in encode_messages([message], "anthropic")[0]
    assert size(message) > size(answer(FAILED))


def test_it_leaves_byte_for_byte_even_when_thinking_before_it_is_stripped() -> None:
    item = Original(number=1, message=answer(thinks=True), tokens=9)
    stripped = edit(item, [Edit(path=(0,), by=None)], size)
    raw = encode_messages([stripped.message], "anthropic")[0]
    assert BLOCK in raw
    assert b"thinking" not in raw


def test_everything_before_the_newest_block_becomes_one_summary_that_knows_its_sources() -> None:
    messages = talk(answer(), user="And now?")
    kept = absorbed(messages)
    assert kept is not None
    summary, block, user = kept
    assert isinstance(summary, Summary)
    assert [(span.first, span.last) for span in summary.sources] == [(1, len(messages) - 2)]
    assert (block.message, user.message) == (messages[-2], messages[-1])
    assert summary.message.role == "user", "the user speaks first"


def test_the_view_that_follows_is_legal_and_the_ledger_keeps_every_message() -> None:
    messages = talk(answer(), user="And now?")
    ledger = ledger_of(messages)
    kept = native.absorb(ledger.view.items, making())
    assert kept is not None
    after = ledger.append(Compacted(at=1.0, mechanisms=(native.NAME,), stands=stands_of(kept)))
    refuse_illegal(mend(after.view.messages))
    assert after.view.tokens < ledger.view.tokens
    assert after.history() == messages
    assert after.view.shown_numbers() == set(range(1, len(messages) + 1))
    assert seams_of(after, after.view.messages).edge == 1, "the block is what the next prune begins behind"


def test_in_a_tool_loop_the_users_task_stands_behind_the_summary() -> None:
    loop = Script("anthropic").calls("bash", {"command": "ls"}, "ok").messages()
    kept = absorbed(talk(answer(), *loop))
    assert kept is not None
    assert [item.message.role for item in kept] == ["user", "user", "assistant", "assistant", "user"]
    assert kept[1].message.text == "Look into everything."


def test_a_second_block_stands_for_the_first_too() -> None:
    messages = talk(answer(), *talk(answer()), user="And now?")
    kept = absorbed(messages)
    assert kept is not None
    assert len(kept) == 3
    assert isinstance(kept[0], Summary)
    assert kept[0].sources[0].last == len(messages) - 2


def test_what_was_absorbed_is_not_absorbed_again() -> None:
    kept = absorbed(talk(answer(), user="And now?"))
    assert kept is not None
    assert native.absorb(kept, making()) is None


def test_a_task_that_was_repeated_before_the_block_stays_there_when_another_follows() -> None:
    loop = Script("anthropic").calls("bash", {"command": "ls"}, "ok").messages()
    kept = absorbed(talk(answer(), *loop))
    assert kept is not None
    more = Script("anthropic").says("Done.").user("And now?").messages()
    later = [*kept, *(Original(number=99 + at, message=new, tokens=5) for at, new in enumerate(more))]
    assert native.absorb(later, making()) is None


@pytest.mark.parametrize(
    "block",
    [
        FAILED,
        b'{"type":"compaction"}',
        b'{"type":"compaction","content":["of another shape"]}',
        b'{"type":"server_tool_use","content":"x"}',
    ],
    ids=["failed", "empty", "unreadable", "another block"],
)
def test_a_block_that_stands_for_nothing_changes_nothing(block: bytes) -> None:
    assert absorbed(talk(answer(block), user="And now?")) is None


def test_text_that_looks_like_a_block_is_none() -> None:
    said = Script("anthropic").says(BLOCK.decode()).user("And now?").messages()
    assert absorbed(talk(*said)) is None


@pytest.mark.parametrize(
    ("block", "alone", "first"),
    [
        (BLOCK, True, 25),
        (BLOCK, False, 0),
        (b'{"type":"compaction","content":"So far."}', True, 0),
        (FAILED, True, 0),
    ],
    ids=["signed and alone", "within an answer", "unsigned", "failed"],
)
def test_a_signed_block_that_came_alone_is_sent_first(block: bytes, alone: bool, first: int) -> None:
    messages = talk(answer(block, alone=alone), user="And now?")
    assert native.sent_from(messages) == first
    assert native.sent_from([]) == 0


def test_the_body_of_a_block_is_all_that_is_compared_and_sent() -> None:
    part = answer().parts[0]
    assert isinstance(part, Opaque)
    fields: dict[str, Any] = msgspec.json.decode(part.body)
    assert fields["signature"] == "c2lnbmVk"
    assert part.body.encode() == BLOCK


def test_the_whole_conversation_is_offered_for_one_call_and_a_block() -> None:
    items = ledger_of(talk(user="And now?")).view.items
    offer = native.propose(items, block_tokens=100)
    assert offer is not None
    whole = sum(item.tokens for item in items)
    assert (offer.mechanism, offer.calls, offer.first_changed) == ("native", 1, 0)
    assert offer.removes + offer.survives == whole
    assert 100 < offer.survives < 150, "the block, and the newest user message behind it"


def test_nothing_is_offered_where_there_is_no_gain() -> None:
    items = ledger_of(talk(user="And now?")).view.items
    assert native.propose(items, block_tokens=10**6) is None
    assert native.propose((), block_tokens=100) is None
    assert native.propose(ledger_of(talk(answer())).view.items, block_tokens=100) is None
