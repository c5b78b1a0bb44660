"""Code on the pages runs and prints what they say; `python tests/docs_pages.py PAGE…` writes what it prints anew."""

import pytest

from tests.docs_pages import DOCS, check

PAGES = [
    "sessions.md",
    "summaries.md",
    "tutorial.md",
    *(f"mechanisms/{page.name}" for page in sorted(DOCS.glob("mechanisms/*.md"))),
]


@pytest.mark.parametrize("name", [name for name in PAGES if name != "mechanisms/index.md"])
def test_every_example_prints_what_the_page_says(name: str) -> None:
    check(DOCS / name)
