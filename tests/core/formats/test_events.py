"""Server-sent events come out whole, however their bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.formats.streams import EventReader, before_last_event

ENDS = [b"\n", b"\r\n", b"\r"]


def read(*chunks: bytes) -> list[bytes]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)] + reader.end()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(marks)]


lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=20)
events = st.lists(st.lists(lines, min_size=1, max_size=3), max_size=5)


@given(events, st.sampled_from(ENDS), st.lists(st.integers(0, 10_000), max_size=30))
def test_every_cut_of_every_spelling_gives_the_same_events(
    told: list[list[str]], end: bytes, places: list[int]
) -> None:
    data = b"".join(
        b": comment" + end + b"".join(b"data: " + line.encode() + end for line in said) + b"id: 7" + end + end
        for said in told
    )
    assert read(*cut(data, places)) == ["\n".join(said).encode() for said in told]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data:x\n\n", [b"x"]),
        (b"data: x\n\n", [b"x"]),
        (b"data:  x\n\n", [b" x"]),
        (b"event: ping\n\ndata: x\n\n", [b"x"]),
        (b"data\n\n", [b""]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"\xef\xbb\xbfdata: x\n\n", [b"x"]),
        (b"data: x\n\ndata: y", [b"x", b"y"]),
        (b"data: x", [b"x"]),
        (b": only\n\n: comments\n\n", []),
        (b"dated: x\n\n", []),
        (b"", []),
    ],
)
def test_what_is_an_event(data: bytes, expected: list[bytes]) -> None:
    assert read(data) == expected
    assert read(*(data[at : at + 1] for at in range(len(data)))) == expected


def test_an_event_is_given_as_soon_as_it_is_whole() -> None:
    reader = EventReader()
    assert reader.feed(b"data: x\r") == []
    assert reader.feed(b"\n\r") == [b"x"]
    assert reader.feed(b"\ndata: y\n\n") == [b"y"]
    assert reader.end() == []


@given(events, st.sampled_from(ENDS))
def test_of_the_events_in_a_chunk_only_the_last_stands_apart(told: list[list[str]], end: bytes) -> None:
    written = [b"".join(b"data: " + line.encode() + end for line in said) + end for said in told]
    before, last = before_last_event(b"".join(written))
    assert [before, last] == [b"".join(written[:-1]), b"".join(written[-1:])]


@given(st.binary(max_size=60))
def test_no_byte_is_lost_where_a_chunk_is_cut(chunk: bytes) -> None:
    assert b"".join(before_last_event(chunk)) == chunk
