"""What a document costs: a PDF by its pages, a text by its text."""

import base64
import binascii
import re

from lowwater.ports import Tokenizer
from lowwater.values.parts import Document

PAGE_TOKENS = 3_000
"""A page of a PDF: Anthropic names 1,500 to 3,000 for its text, and its picture comes on top."""
PAGE_BYTES = 50_000
"""How large a page is taken to be in a PDF that hides its page list in compressed objects."""
UNKNOWN_PAGES = 5
"""A document that is elsewhere, behind a URL or the id of an upload, counts as this many pages."""

_PAGE = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_PAGES = re.compile(rb"/Type\s{0,8}/Pages(?![A-Za-z])")
_KIDS = re.compile(rb"/Count\s{1,8}(\d{1,6})")


def count_document(document: Document, tokenizer: Tokenizer) -> int:
    """Return how many tokens `document` is, title included."""
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
    """Return a PDF's pages: those it shows, else those its page list names, else by its size; at least one."""
    shown = sum(1 for _ in _PAGE.finditer(raw))
    if shown:
        return shown
    named = [
        int(count[1])
        for tree in _PAGES.finditer(raw)
        if (count := _KIDS.search(raw, tree.end(), tree.end() + 200))
    ]
    return max([1, *named]) if named else max(1, len(raw) // PAGE_BYTES)
