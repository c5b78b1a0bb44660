import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.core.entries import Appended, Checkpointed, Entry
from lowwater.core.events import TurnRecord
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Format, Message, Text, Wire
from lowwater.errors import BadInput
from lowwater.stores.serialization import (
    StoredMessage,
    digest_of,
    message_keys,
    pack_entry,
    pack_event,
    pack_record,
    restored,
    shrunk,
    unpack_entry,
    unpack_event,
    unpack_message,
    unpack_record,
)
from lowwater.testing.store_contract.samples import compaction, skip, turn
from lowwater.testing.strategies import ledger_entries, transcripts


def there_and_back(entry: Entry) -> Entry:
    packed = pack_entry(entry)
    messages = {content.key: unpack_message(content.body) for content in packed.contents}
    return unpack_entry(packed.body, messages)


def spelled_out(entry: Entry) -> object:
    """Every field of an entry, wire forms and extras too, which equality of messages leaves out."""
    plain = msgspec.to_builtins(entry)
    for message in plain.get("messages", ()):
        message.pop("memo")
    return plain


@given(ledger_entries())
@settings(max_examples=60)
def test_every_entry_comes_back_with_every_field(entries):
    back = [there_and_back(entry) for entry in entries]
    assert [spelled_out(entry) for entry in back] == [spelled_out(entry) for entry in entries]
    assert Ledger().extend(back).view == Ledger().extend(entries).view


@pytest.mark.parametrize("format", ["anthropic", "openai_chat", "openai_responses"])
@given(data=st.data())
@settings(max_examples=40)
def test_messages_leave_the_store_in_the_bytes_they_came_in(data, format):
    raws = data.draw(transcripts(format))
    messages = decode_messages(raws, format)
    entry = Appended(at=1.5, messages=tuple(messages), tokens=tuple(range(len(messages))))
    back = there_and_back(entry)
    assert isinstance(back, Appended)
    assert spelled_out(back) == spelled_out(entry)
    assert encode_messages(back.messages, format) == encode_messages(messages, format) == raws


def test_equal_content_in_other_bytes_is_stored_apart():
    one = Message(role="user", parts=(Text(text="a"),), wire=Wire(format="anthropic", raw=b'{"a":1}'))
    other = Message(role="user", parts=(Text(text="a"),), wire=Wire(format="anthropic", raw=b'{"a": 1}'))
    assert one == other
    packed = pack_entry(Appended(at=0.0, messages=(one, other), tokens=(1, 1)))
    assert len({content.key for content in packed.contents}) == 2


def test_the_same_message_has_one_key_whether_its_digest_was_asked_for_or_not():
    fresh, asked = (Message(role="user", parts=(Text(text="a"),)) for _ in range(2))
    assert asked.digest
    packed = pack_entry(Appended(at=0.0, messages=(fresh, asked), tokens=(1, 1)))
    assert len(set(message_keys(packed.body))) == 1
    assert message_keys(packed.body) == tuple(content.key for content in packed.contents)


def test_entries_without_messages_name_no_keys():
    assert message_keys(pack_entry(Checkpointed(at=0.0, name="here")).body) == ()


@pytest.mark.parametrize(
    "entry",
    [
        Checkpointed(at=0.0, name="\ud83d"),
        Appended(at=0.0, messages=(Message(role="user", parts=(Text(text="\ud83d"),)),), tokens=(1,)),
    ],
    ids=["in a name", "in a message"],
)
def test_half_a_character_is_refused_in_one_sentence(entry):
    with pytest.raises(BadInput, match="half a character"):
        pack_entry(entry)


@pytest.mark.parametrize(
    "record", [TurnRecord(at=1.25, model="m"), turn(at=1_800_000_000.123456)], ids=["bare", "full"]
)
def test_a_record_comes_back_whole(record):
    assert unpack_record(pack_record(record)) == record


@pytest.mark.parametrize("event", [compaction(), skip()], ids=["compaction", "skip"])
def test_an_event_comes_back_whole(event):
    assert unpack_event(pack_event(event)) == event


def test_the_samples_leave_no_field_of_a_record_or_a_compaction_as_it_is_by_default():
    for sample in (turn(), compaction()):
        fields = msgspec.structs.fields(sample)
        assert all(getattr(sample, field.name) != field.default for field in fields)


def contents_of(raws: list[bytes], format: Format) -> tuple[StoredMessage, ...]:
    messages = tuple(decode_messages(raws, format))
    return pack_entry(Appended(at=1.0, messages=messages, tokens=(1,) * len(messages))).contents


@pytest.mark.parametrize("format", ["anthropic", "openai_chat", "openai_responses"])
@given(data=st.data())
@settings(max_examples=40)
def test_the_shorter_form_is_never_longer_and_gives_back_the_same_bytes(data, format):
    for content in contents_of(data.draw(transcripts(format)), format):
        assert restored(shrunk(content)) == content.body
        assert len(shrunk(content)) <= len(content.body)
        assert restored(content.body) == content.body, "what older versions stored"


@pytest.mark.parametrize("length", [2_000, 5_000, 40_000, 500_000])
def test_a_message_is_stored_with_its_text_little_more_than_once(length):
    chance = random.Random(length)
    text = "".join(chance.choices('abcdefghijklmnop \n"é', k=length))
    (content,) = contents_of([msgspec.json.encode({"role": "user", "content": text})], "openai_chat")
    short = shrunk(content)
    assert restored(short) == content.body
    assert len(short) < 0.85 * len(content.body)


@given(data=st.data())
def test_damage_to_the_compressed_bytes_is_noticed_and_costs_neither_role_nor_calls(data):
    call = {"id": "call_7", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    raw = msgspec.json.encode({"role": "assistant", "content": "some words " * 200, "tool_calls": [call]})
    (content,) = contents_of([raw], "openai_chat")
    short = bytearray(shrunk(content))
    at = data.draw(st.integers(1, len(short) - 1))
    short[at] ^= data.draw(st.integers(1, 255))
    back = restored(bytes(short))
    # A bit that only pads the compressed bytes changes nothing.
    assert digest_of(back) != content.key or back == content.body
    if at >= 13 + len(content.body) - len(raw):
        message = unpack_message(back)
        assert (message.role, [call.id for call in message.calls]) == ("assistant", ["call_7"])


def test_forged_lengths_inflate_nothing() -> None:
    (content,) = contents_of([msgspec.json.encode({"role": "user", "content": "word " * 200})], "openai_chat")
    short = bytearray(shrunk(content))
    assert bytes(short) != content.body
    short[5:9] = b"\xff\xff\xff\xff"
    forged = bytes(short) + b"\x00" * 100_000
    assert len(restored(forged)) < len(forged)
