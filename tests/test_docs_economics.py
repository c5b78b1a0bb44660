"""Code in docs/economics.md runs and prints what the page says; run this file to write what it prints anew."""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "economics.md"
OVERVIEW = ROOT / "docs" / "overview.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)
EXPLAINED = re.compile(r"<!-- explain -->\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def examples() -> Iterator[tuple[str, str]]:
    """What the page says that each example prints, and what it prints; the later ones build on the earlier."""
    names: dict[str, object] = {}
    for example in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")):
        said = StringIO()
        with redirect_stdout(said):
            exec(compile(example["code"], str(PAGE), "exec"), names)
        yield example["printed"], said.getvalue()


@pytest.fixture(scope="module")
def ran() -> list[tuple[str, str]]:
    return list(examples())


def test_every_example_prints_what_the_page_says(ran: list[tuple[str, str]]) -> None:
    assert len(ran) > 3
    for on_page, printed in ran:
        assert on_page == printed


def test_every_python_block_has_its_output(ran: list[tuple[str, str]]) -> None:
    assert PAGE.read_text(encoding="utf-8").count("```python") == len(ran)


def test_the_overview_shows_the_explanation_of_the_same_session(ran: list[tuple[str, str]]) -> None:
    shown = EXPLAINED.search(OVERVIEW.read_text(encoding="utf-8"))
    assert shown is not None
    assert shown["printed"] == ran[-1][1]


def rewrite() -> None:
    """Put what the examples print into the page, and what the last one prints into the overview."""
    printed = [said for _, said in examples()]
    left = iter(printed)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(EXAMPLE.sub(lambda found: _with(found, next(left)), page), encoding="utf-8")
    overview = OVERVIEW.read_text(encoding="utf-8")
    OVERVIEW.write_text(EXPLAINED.sub(lambda found: _with(found, printed[-1]), overview), encoding="utf-8")


def _with(found: re.Match[str], printed: str) -> str:
    before = found[0][: found.start("printed") - found.start()]
    return f"{before}{printed}```"


if __name__ == "__main__":
    rewrite()
