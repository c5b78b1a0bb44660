"""A provider's own block where it cannot go as it is: concealed, and in another provider's format."""

import json

from lowwater.core.entries import Compacted, Numbers, SummarizedSpan
from lowwater.core.formats.codec import encode_messages
from lowwater.core.formats.files import WholeSession, conceal_session
from lowwater.core.messages import Opaque, Text, block_in, message_text, message_with, read_block
from lowwater.core.view import Summary, view_items

BLOCK = b'{"type":"compaction","content":"Two files were read.",  "signature":"c2ln"}'
KEY = f"ghp_{'A1b2' * 9}"


def entry_with(block: bytes) -> Compacted:
    message = message_with(block)
    item = Summary(message=message, tokens=9, sources=(Numbers(first=1, last=4),), depth=1)
    return Compacted(at=1.0, mechanisms=("native",), items=view_items([item]))


def test_a_block_stands_in_an_entry_with_its_words_beside_it() -> None:
    (stand,) = entry_with(BLOCK).items
    assert isinstance(stand, SummarizedSpan)
    assert (stand.text, stand.role, stand.block) == ("Two files were read.", "assistant", BLOCK)


def test_a_block_without_a_secret_is_exported_as_it_is() -> None:
    session = WholeSession(name="one", entries=(entry_with(BLOCK),))
    assert conceal_session(session).session is session


def test_of_a_block_that_tells_a_secret_only_the_other_words_are_exported() -> None:
    entry = entry_with(BLOCK.replace(b"Two files", f"Key {KEY}".encode()))
    (concealed,) = conceal_session(WholeSession(name="one", entries=(entry,))).session.entries
    assert isinstance(concealed, Compacted)
    (stand,) = concealed.items
    assert isinstance(stand, SummarizedSpan)
    assert stand.block == b""
    assert KEY not in stand.text
    assert "were read." in stand.text


def test_in_the_chat_format_a_block_is_what_it_says() -> None:
    (raw,) = encode_messages([message_with(BLOCK)], "openai_chat")
    said = json.loads(raw)
    assert said["role"] == "assistant"
    assert "Two files were read." in json.dumps(said["content"])
    assert "signature" not in raw.decode()


def test_only_a_block_alone_in_its_message_is_taken_for_one() -> None:
    message = message_with(BLOCK)
    assert (block_in(message), message_text(message)) == (BLOCK, "Two files were read.")
    beside = message.with_parts([*message.parts, Text(text="And on.")])
    assert (block_in(beside), message_text(beside)) == (b"", "And on.")
    broken = Opaque(block="compaction", body='{"content": 7}')
    assert read_block(broken) is None
    assert message_text(message.with_parts([broken])) == ""
