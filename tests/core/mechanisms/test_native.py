"""A provider's own compaction block is kept byte for byte and stands for everything before it (`native`)."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowwater.core.cache.marks import seams_of
from lowwater.core.entries import Appended, Compacted, Edit
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.legality import mend, refuse_illegal
from lowwater.core.mechanisms import native
from lowwater.core.mechanisms.edits import edit
from lowwater.core.mechanisms.mechanism import Zones, find_zones
from lowwater.core.mechanisms.spans import request_for
from lowwater.core.messages import Message, Opaque, Span, Text, block_in, sent_from
from lowwater.core.view import Item, Original, Summary, own_block, view_items
from lowwater.testing.invariants import check_newest_user
from lowwater.testing.strategies import transcripts
from lowwater.testing.views import Script, making, size

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
    after = ledger.append(Compacted(at=1.0, mechanisms=(native.NAME,), items=view_items(kept)))
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
    assert sent_from(messages) == first
    assert sent_from([]) == 0


def test_the_body_of_a_block_is_all_that_is_compared_and_sent() -> None:
    part = answer().parts[0]
    assert isinstance(part, Opaque)
    fields: dict[str, Any] = msgspec.json.decode(part.body)
    assert fields["signature"] == "c2lnbmVk"
    assert part.body.encode() == BLOCK


def zones_of(items: Sequence[Item], tail: int) -> Zones:
    return find_zones(items, first=3, last=tail, tail_tokens=0)


def test_everything_before_the_tail_is_offered_for_one_call_and_a_block() -> None:
    items = ledger_of(talk(user="And now?")).view.items
    offer = native.propose(items, zones_of(items, 4), block_tokens=100)
    assert offer is not None
    whole = sum(item.tokens for item in items)
    assert (offer.mechanism, offer.calls, offer.first_changed) == ("native", 1, 0)
    assert offer.span == Span(start=0, stop=21), (
        "the protected start too, for nothing may stand before the block"
    )
    assert offer.removes + offer.survives == whole


def test_nothing_is_offered_where_there_is_no_gain() -> None:
    items = ledger_of(talk(user="And now?")).view.items
    assert native.propose(items, zones_of(items, 4), block_tokens=10**6) is None
    assert native.propose((), zones_of((), 4), block_tokens=100) is None
    unasked = ledger_of(talk(answer(), *talk(user="And now?"))).view.items
    assert native.propose(unasked, zones_of(unasked, 4), block_tokens=100) is None, (
        "two kinds of blocks do not mix"
    )


def test_the_cut_never_falls_between_two_messages_of_one_role() -> None:
    said = Script("anthropic").user("One thing.").user("And another.").user("A third.").messages()
    items = ledger_of(talk(*said)).view.items
    for tail in range(1, 4):
        offer = native.propose(items, zones_of(items, tail), block_tokens=20)
        assert offer is not None
        assert offer.span is not None
        before, behind = items[offer.span.stop - 1], items[offer.span.stop]
        assert (before.message.role == "assistant") != (behind.message.role == "assistant")


def placed(messages: list[Message], stop: int) -> list[Item]:
    return native.put_block(ledger_of(messages).view.items, Span(start=0, stop=stop), BLOCK, making())


def test_the_block_that_was_asked_for_is_a_summary_that_knows_its_sources() -> None:
    messages = talk(user="And now?")
    kept = placed(messages, 21)
    assert own_block(kept) is kept[0]
    assert isinstance(kept[0], Summary)
    assert [(span.first, span.last) for span in kept[0].sources] == [(1, 21)]
    assert [item.message for item in kept[1:]] == messages[21:]
    assert sent_from([item.message for item in kept]) == 0
    assert encode_messages([kept[0].message], "anthropic") == [
        b'{"role":"assistant","content":[' + BLOCK + b"]}"
    ]


def test_what_follows_it_directly_is_told_from_what_does_not() -> None:
    messages = talk(user="And now?")
    before = ledger_of(messages).view.items
    after = native.put_block(before, Span(start=0, stop=21), BLOCK, making())
    assert native.follows_directly(before, after)
    shorter = edit(after[2], [Edit(path=(0,), by=Text(text="x"))], size)
    assert not native.follows_directly(before, [*after[:2], shorter, *after[3:]])
    assert not native.follows_directly(before, [after[0], before[0], *after[1:]])
    loop = talk(*Script("anthropic").calls("bash", {"command": "ls"}, "ok").messages())
    looping = ledger_of(loop).view.items
    repeating = native.put_block(looping, Span(start=0, stop=21), BLOCK, making())
    assert repeating[1].message.text == "Look into everything."
    assert not native.follows_directly(looping, repeating)


def test_for_a_model_that_reads_no_block_its_words_stand_in_its_place() -> None:
    kept = placed(talk(user="And now?"), 21)
    told = native.as_text(kept, making())
    assert isinstance(told[0], Summary)
    assert isinstance(kept[0], Summary)
    assert "What was done so far: über 12 files." in told[0].message.text
    assert (told[0].message.role, told[0].sources, told[1:]) == ("user", kept[0].sources, kept[1:])
    assert own_block(told) is None


def test_a_later_summary_updates_what_the_block_says() -> None:
    kept = placed(talk(user="And now?"), 21)
    request = request_for(kept, Span(start=0, stop=2), max_tokens=100, focus="", recall=False)
    assert request.previous == "What was done so far: über 12 files."


messages_and_cuts = transcripts("anthropic").map(lambda raws: decode_messages(raws, "anthropic"))


@given(messages_and_cuts, st.integers(min_value=1, max_value=6))
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
def test_whatever_it_stands_for_nothing_is_lost_and_the_ledger_gives_it_back(
    messages: list[Message], tail: int
) -> None:
    ledger = ledger_of(messages)
    items = ledger.view.items
    offer = native.propose(items, zones_of(items, tail), block_tokens=1)
    if offer is None or offer.span is None:
        return
    kept = native.put_block(items, offer.span, BLOCK, making())
    after = ledger.append(Compacted(at=1.0, mechanisms=(native.NAME,), items=view_items(kept)))
    stored = msgspec.json.decode(msgspec.json.encode(after.entries[-1]), type=Compacted)
    again = ledger.append(stored)
    for view in (after.view, again.view):
        refuse_illegal(mend(view.messages))
        assert view.shown_numbers() == set(range(1, len(messages) + 1))
        assert block_in(view.items[0].message) == BLOCK
        assert [item.message for item in view.items] == [item.message for item in kept]
    told = native.as_text(after.view.items, making())
    refuse_illegal(mend([item.message for item in told]))
    assert view_items(told)[0].sources == view_items(kept)[0].sources  # type: ignore[union-attr]
    check_newest_user(after)
