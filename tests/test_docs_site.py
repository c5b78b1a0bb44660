"""The site builds without a warning, and its reference pages are what the code says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.reference import PAGES, PAGES_BY_NAME

ROOT = Path(__file__).parents[1]


def test_every_page_builds_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()
    assert (tmp_path / "site" / "measured.html").exists()


@pytest.mark.parametrize("name", list(PAGES_BY_NAME))
def test_a_reference_page_is_what_the_code_says(name: str) -> None:
    """Every command, public name and setting is there; `python -m tools.reference` writes them anew."""
    assert (PAGES / name).read_text(encoding="utf-8") == PAGES_BY_NAME[name]()


def test_every_page_is_reached_from_the_navigation() -> None:
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in told} == set()
