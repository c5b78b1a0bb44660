"""Counting the tokens of images and documents."""

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from lowwater.core.messages import Document, Image
from lowwater.protocols import Tokenizer

UNKNOWN_AREA = 1_600
"""An image of unknown size (a URL, an uploaded file, another format) counts as the largest, by Anthropic's rule."""
UNKNOWN_TILES = 765
"""The same by OpenAI's rule, as an image of 1,024 × 1,024."""
PAGE_TOKENS = 3_000
"""The tokens of a PDF page: Anthropic documents 1,500 to 3,000 for its text, and its image is added."""
PAGE_BYTES = 50_000
"""The assumed size of a page in a PDF whose page list is in compressed objects."""
UNKNOWN_PAGES = 5
"""The assumed number of pages of a document given by a URL or the id of an upload."""

_HEAD = 512 * 1024
"""Characters of base64 that are decoded: the size of a JPEG can follow a long preview."""
_PAGE = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_PAGES = re.compile(rb"/Type\s{0,8}/Pages(?![A-Za-z])")
_KIDS = re.compile(rb"/Count\s{1,8}(\d{1,6})")


class PictureSize(Struct, frozen=True, kw_only=True):
    """Width and height in pixels."""

    width: int
    height: int


def count_picture(image: Image, rule: Literal["tiles", "area"]) -> int:
    """Return how many tokens `image` takes by a provider's rule; an image of unknown size gets a default."""
    size = picture_size(image.data) if image.source == "base64" else None
    return _by_area(size) if rule == "area" else _by_tiles(size, image.detail)


def _by_area(size: PictureSize | None) -> int:
    # Anthropic: scaled down to a long edge of 1,568, then one token per 750 pixels, about 1,600 at most.
    if size is None:
        return UNKNOWN_AREA
    scale = min(1.0, 1_568 / max(size.width, size.height))
    return min(1_600, math.ceil(size.width * size.height * scale * scale / 750))


def _by_tiles(size: PictureSize | None, detail: str) -> int:
    # OpenAI: 85 at low detail; else scaled down into 2,048 × 2,048 and to a short edge of 768, then 170 for each tile
    # of 512 × 512 and 85 once.
    if detail == "low":
        return 85
    if size is None:
        return UNKNOWN_TILES
    scale = min(1.0, 2_048 / max(size.width, size.height))
    scale *= min(1.0, 768 / (min(size.width, size.height) * scale))
    return 85 + 170 * math.ceil(size.width * scale / 512) * math.ceil(size.height * scale / 512)


def picture_size(data: str) -> PictureSize | None:
    """Return the size of a base64 PNG, JPEG, GIF or WebP image; None if its first bytes do not tell."""
    head = "".join(data[:_HEAD].split())
    try:
        raw = base64.b64decode(head[: len(head) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    for magic, read in _READERS:
        if raw.startswith(magic):
            size = read(raw)
            return size if size is not None and size.width > 0 and size.height > 0 else None
    return None


def _png(raw: bytes) -> PictureSize | None:
    if len(raw) < 24:
        return None
    return PictureSize(width=int.from_bytes(raw[16:20]), height=int.from_bytes(raw[20:24]))


def _gif(raw: bytes) -> PictureSize | None:
    if len(raw) < 10:
        return None
    return PictureSize(width=int.from_bytes(raw[6:8], "little"), height=int.from_bytes(raw[8:10], "little"))


def _webp(raw: bytes) -> PictureSize | None:
    if len(raw) < 30 or raw[8:12] != b"WEBP":
        return None
    match raw[12:16]:
        case b"VP8 ":
            width, height = int.from_bytes(raw[26:28], "little"), int.from_bytes(raw[28:30], "little")
            return PictureSize(width=width & 0x3FFF, height=height & 0x3FFF)
        case b"VP8L":
            bits = int.from_bytes(raw[21:25], "little")
            return PictureSize(width=(bits & 0x3FFF) + 1, height=(bits >> 14 & 0x3FFF) + 1)
        case b"VP8X":
            width, height = int.from_bytes(raw[24:27], "little"), int.from_bytes(raw[27:30], "little")
            return PictureSize(width=width + 1, height=height + 1)
        case _:
            return None


def _jpeg(raw: bytes) -> PictureSize | None:
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame header
            return PictureSize(
                width=int.from_bytes(raw[at + 7 : at + 9]), height=int.from_bytes(raw[at + 5 : at + 7])
            )
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # followed by no length
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(raw[at + 2 : at + 4]))
    return None


_READERS: tuple[tuple[bytes, Callable[[bytes], PictureSize | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF8", _gif),
    (b"RIFF", _webp),
)


def count_document(document: Document, tokenizer: Tokenizer) -> int:
    """Return how many tokens `document` takes, including its title."""
    title = tokenizer.count(document.title)
    match document.source:
        case "text":
            return title + tokenizer.count(document.data)
        case "base64":
            return title + _count_bytes(document, tokenizer)
        case "url" | "file":
            return title + UNKNOWN_PAGES * PAGE_TOKENS


def _count_bytes(document: Document, tokenizer: Tokenizer) -> int:
    try:
        raw = base64.b64decode(document.data)
    except (binascii.Error, ValueError):
        return tokenizer.count(document.data)
    if document.media_type.startswith("text/"):
        return tokenizer.count(raw.decode("utf-8", "replace"))
    return _pages(raw) * PAGE_TOKENS


def _pages(raw: bytes) -> int:
    """Return the number of pages in a PDF: of its page objects, or else by its page list, or else by its size; at least one."""
    shown = sum(1 for _ in _PAGE.finditer(raw))
    if shown:
        return shown
    named = [
        int(count[1])
        for tree in _PAGES.finditer(raw)
        if (count := _KIDS.search(raw, tree.end(), tree.end() + 200))
    ]
    return max([1, *named]) if named else max(1, len(raw) // PAGE_BYTES)
