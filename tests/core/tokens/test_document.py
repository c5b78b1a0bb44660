"""What a document costs."""

import base64

import pytest

from lowwater.core.messages import Document
from lowwater.core.tokens.estimate import CharacterTokenizer
from lowwater.core.tokens.media import PAGE_BYTES, PAGE_TOKENS, UNKNOWN_PAGES, count_document

TOKENIZER = CharacterTokenizer()


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


@pytest.mark.parametrize(
    ("raw", "pages"),
    [
        (b"%PDF-1.4 <</Type /Pages /Count 9>> <</Type /Page>> <</Type/Page/Parent 1 0 R>>", 2),
        (b"%PDF-1.7 <</Type /Pages /Kids [3 0 R] /Count 12>>", 12),
        (b"%PDF-1.7 " + b"\0" * (3 * PAGE_BYTES), 3),
        (b"%PDF-1.7", 1),
    ],
    ids=["pages shown", "page list", "by size", "tiny"],
)
def test_a_pdf_counts_by_its_pages(raw, pages):
    document = Document(source="base64", data=encoded(raw), media_type="application/pdf")
    assert count_document(document, TOKENIZER) == pages * PAGE_TOKENS


def test_a_text_counts_as_its_text_however_it_is_carried():
    body = "Rows are kept for ninety days.\n" * 20
    plain = Document(source="text", data=body, media_type="text/plain")
    carried = Document(source="base64", data=encoded(body.encode()), media_type="text/plain")
    assert count_document(plain, TOKENIZER) == count_document(carried, TOKENIZER) == TOKENIZER.count(body)


def test_the_title_counts_too():
    bare = Document(source="text", data="body")
    titled = Document(source="text", data="body", title="Retention rules")
    assert count_document(titled, TOKENIZER) == count_document(bare, TOKENIZER) + TOKENIZER.count(
        "Retention rules"
    )


@pytest.mark.parametrize("source", ["url", "file"])
def test_a_document_that_is_elsewhere_counts_a_stated_default(source):
    assert count_document(Document(source=source, data="x"), TOKENIZER) == UNKNOWN_PAGES * PAGE_TOKENS


def test_data_that_is_no_base64_counts_as_text():
    document = Document(source="base64", data="not base64 é", media_type="application/pdf")
    assert count_document(document, TOKENIZER) == TOKENIZER.count("not base64 é")
