"""What docstrings and comments cite can be read in the repository: the document, and the section of it that they name."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
DOCUMENT = re.compile(r"(?<![\w/.-])(?:\.{1,2}/)?[\w-]+(?:/[\w-]+)*\.md\b")
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "bench/README.md")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FILE = re.compile(r"`(?P<path>[\w-]+(?:/[\w-]+)+\.(?:py|json|txt|toml))`")
SECTIONS = re.compile(r"docs/specification\.md: (?P<letters>[A-Z]\d?(?:, [A-Z]\d?)*)")
HEADING = re.compile(r'(?P<page>docs/[\w/-]+\.md), "(?P<heading>[^"]+)"')
ELSEWHERE = re.compile(r"\b(?:SPEC|ECONOMICS|DESIGN|PEERS|STACK|HOUSE|CONVENTIONS)\b(?!`)")
"""Documents that the work began with, and that are not in the repository."""


def prose_of(source: str) -> Iterator[str]:
    """Yield what people read in a module: its docstrings, its strings that stand alone, and its comments."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def uncited(prose: str) -> Iterator[str]:
    """Yield what the prose cites and nobody can look up."""
    yield from ELSEWHERE.findall(prose)
    yield from (name for name in DOCUMENT.findall(prose) if not (ROOT / name).is_file())
    sections = headings(ROOT / "docs" / "specification.md")
    for found in SECTIONS.finditer(prose):
        letters = found["letters"].split(", ")
        yield from (
            each for each in letters if not any(title.startswith(f"{each[0]}. ") for title in sections)
        )
    for found in HEADING.finditer(prose):
        if found["heading"] not in headings(ROOT / found["page"]):
            yield found["heading"]


@cache
def headings(page: Path) -> set[str]:
    return {
        line.lstrip("# ") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("#")
    }


def test_every_document_that_the_code_cites_is_in_the_repository() -> None:
    modules = {
        str(path.relative_to(SOURCE)): list(prose_of(path.read_text(encoding="utf-8")))
        for path in SOURCE.rglob("*.py")
    }
    missing = {
        name: found
        for name, read in modules.items()
        if (found := [each for prose in read for each in uncited(prose)])
    }
    assert missing == {}
    assert sum(bool(SECTIONS.search(prose)) for read in modules.values() for prose in read) > 5


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""A rule (SPEC A)."""', ["SPEC"]),
        ("x = 1  # see PEERS", ["PEERS"]),
        ('x = 1\n"""Measured in docs/nowhere.md."""', ["docs/nowhere.md"]),
        ('"""Above (../shared/NOTES.md)."""', ["../shared/NOTES.md"]),
        ('"""A rule (docs/specification.md: A, Z)."""', ["Z"]),
        ('"""A rule (docs/economics.md, "No such heading")."""', ["No such heading"]),
        ('"""A rule (docs/specification.md: C2; docs/economics.md, "The rule")."""', []),
        ('"""Nothing."""\nname = "AGENTS.md"', []),
    ],
    ids=[
        "docstring",
        "comment",
        "missing page",
        "beside",
        "missing section",
        "missing heading",
        "fine",
        "a value",
    ],
)
def test_what_cannot_be_looked_up_is_found(source: str, found: list[str]) -> None:
    assert [each for prose in prose_of(source) for each in uncited(prose)] == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    named = {found["path"] for found in FILE.finditer(text)}
    places = (ROOT, SOURCE / "lowwater", page.parent)
    assert {path for path in named if not any((place / path).is_file() for place in places)} == set()


def test_pages_name_files() -> None:
    assert len(FILE.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))) > 30
