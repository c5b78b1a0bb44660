"""Messages that were read before are known by their bytes: the same objects, the same keys, and no more memory than is allowed."""

import gc
from typing import Any
from weakref import ref

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from lowwater.errors import BadInput
from lowwater.gateway import session_lookup
from lowwater.gateway.session_lookup import MessageCache, ReadMessage, chain_keys, prefix_keys


def said(*texts: str) -> list[bytes]:
    return [
        msgspec.json.encode({"role": ("user", "assistant")[index % 2], "content": text})
        for index, text in enumerate(texts)
    ]


lists = st.lists(st.sampled_from("abc"), min_size=1, max_size=8)


@given(st.lists(lists, min_size=1, max_size=12), st.sampled_from([0, 2_000, 1_000_000]))
def test_whatever_was_read_before_a_list_reads_the_same(told: list[list[str]], most: int) -> None:
    known = MessageCache(most)
    for texts in told:
        read = known.read(said(*texts), "anthropic")
        fresh = MessageCache(0).read(said(*texts), "anthropic")
        assert [each.message for each in read] == [each.message for each in fresh]
        assert [each.raw for each in read] == said(*texts)
        assert prefix_keys(read) == tuple(chain_keys([each.likeness for each in fresh]))


def test_a_list_that_grew_is_made_of_the_same_messages() -> None:
    known = MessageCache(1_000_000)
    first = known.read(said("a", "b", "c"), "anthropic")
    again = known.read(said("a", "b", "c", "d", "e"), "anthropic")
    assert all(new is old for new, old in zip(again[:3], first, strict=True))
    branch = known.read(said("a", "b", "x", "d"), "anthropic")
    assert [each.message.text for each in branch] == ["a", "b", "x", "d"]
    assert branch[3] is again[3], "a message is the same wherever it stands"


def test_another_thread_that_asks_for_the_same_message_elsewhere_changes_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = MessageCache(1_000_000).read(said("a", "b", "c"), "anthropic")
    wanted = tuple(chain_keys([each.likeness for each in read]))

    def overtaken(each: ReadMessage, field: str, value: object) -> None:
        force_setattr(each, field, value)
        force_setattr(each, field, (b"behind others", b"a key of theirs"))

    monkeypatch.setattr(session_lookup, "force_setattr", overtaken)
    assert prefix_keys(read) == wanted


def test_two_formats_never_share_a_message() -> None:
    known = MessageCache(1_000_000)
    for _ in range(2):
        for format in ("anthropic", "openai_chat"):
            read = known.read(said("a", "b", "c"), format)
            assert {each.message.wire and each.message.wire.format for each in read} == {format}


def test_what_is_forgotten_takes_no_memory_though_something_leads_to_it() -> None:
    known = MessageCache(10_000)
    head, *behind = said("hello", *(f"long {at} " * 80 for at in range(4)))
    tail = [ref(each) for each in known.read([head, *behind], "anthropic")[1:]]
    assert all(each() is not None for each in tail)
    for number in range(40):
        known.read([head], "anthropic")
        known.read(said(f"{number} " * 400), "anthropic")
    gc.collect()
    assert all(each() is None for each in tail)


def test_what_cannot_be_read_is_not_remembered() -> None:
    known = MessageCache(1_000_000)
    broken: list[Any] = [*said("a", "b"), b'{"role":"user","content":7}']
    for _ in range(2):
        with pytest.raises(BadInput):
            known.read(broken, "anthropic")
    assert len(known.read(said("a", "b", "c"), "anthropic")) == 3
