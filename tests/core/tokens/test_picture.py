"""The size of a picture from its first bytes, and its price by either rule."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.core.messages import Image
from lowwater.core.tokens.media import UNKNOWN_AREA, UNKNOWN_TILES, PictureSize, count_picture, picture_size


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + struct.pack(">II", width, height) + b"\x08\x06\0\0\0"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\xf7\0\0"


def jpeg(width: int, height: int) -> bytes:
    preview = b"\xff\xe1" + struct.pack(">H", 40_002) + b"\0" * 40_000
    tables = b"\xff\xc4" + struct.pack(">H", 5) + b"\0\0\0"
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\0\0\0"
    return b"\xff\xd8" + preview + tables + frame


def webp_lossy(width: int, height: int) -> bytes:
    body = (
        b"VP8 "
        + struct.pack("<I", 10)
        + b"\x30\x01\0\x9d\x01\x2a"
        + struct.pack("<HH", width, height | 1 << 14)
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_lossless(width: int, height: int) -> bytes:
    body = (
        b"VP8L"
        + struct.pack("<I", 5)
        + b"\x2f"
        + struct.pack("<I", (width - 1) | (height - 1) << 14)
        + b"\0" * 5
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def webp_extended(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"VP8X" + struct.pack("<I", 10) + b"\x10\0\0\0" + size
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


MAKERS = [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended]


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_size_is_read_from_the_header(make):
    assert picture_size(text(make(1_234, 567))) == PictureSize(width=1_234, height=567)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_header_cut_short_says_nothing(make):
    whole = make(100, 100)
    for length in range(0, len(whole) - 4, max(1, len(whole) // 50)):
        assert picture_size(text(whole[:length])) in (None, PictureSize(width=100, height=100))
    assert picture_size(text(whole[:8])) is None


def test_line_breaks_inside_base64_do_no_harm():
    broken = "\n".join(text(png(40, 30))[at : at + 7] for at in range(0, 60, 7))
    assert picture_size(broken) == PictureSize(width=40, height=30)


@pytest.mark.parametrize(
    "data", ["", "????", "é" * 9, text(b"BM" + b"\0" * 60), text(png(0, 5)), "QUJ"], ids=repr
)
def test_what_is_no_known_picture_has_no_size(data):
    assert picture_size(data) is None


@pytest.mark.parametrize(
    ("width", "height", "area", "tiles"),
    [
        (200, 200, 54, 85 + 170),
        (1_000, 1_000, 1_334, 85 + 4 * 170),
        (1_092, 1_092, 1_590, 85 + 4 * 170),
        (1_920, 1_080, 1_600, 85 + 6 * 170),
        (8_000, 100, 41, 85 + 4 * 170),
        (20_000, 20_000, 1_600, 85 + 4 * 170),
    ],
    ids=str,
)
def test_a_picture_costs_what_the_provider_publishes(width, height, area, tiles):
    image = Image(source="base64", data=text(png(width, height)))
    assert count_picture(image, "area") == area
    assert count_picture(image, "tiles") == tiles


def test_low_detail_is_flat():
    assert count_picture(Image(source="base64", data=text(png(900, 900)), detail="low"), "tiles") == 85
    assert count_picture(Image(source="url", data="https://a/b.png", detail="low"), "tiles") == 85


@pytest.mark.parametrize("source", ["url", "file"])
def test_a_picture_that_is_elsewhere_counts_a_stated_default(source):
    image = Image(source=source, data=text(png(10, 10)))
    assert count_picture(image, "area") == UNKNOWN_AREA
    assert count_picture(image, "tiles") == UNKNOWN_TILES


@given(st.binary(max_size=200), st.sampled_from([b"", b"\xff\xd8", b"RIFF", b"GIF89a", b"\x89PNG\r\n\x1a\n"]))
def test_no_bytes_crash_the_reader(rest: bytes, magic: bytes):
    image = Image(source="base64", data=text(magic + rest))
    assert 0 < count_picture(image, "area") <= 1_600
    assert count_picture(image, "tiles") >= 85
