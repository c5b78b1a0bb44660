"""The page about extending: its excerpts are the example's own code, and what it runs prints what it says.

Run this file as a program to write what it prints into the page anew.
"""

import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.session.installed_packages import EXAMPLE, PATH, add_example, look_again, put_on_path

ROOT = EXAMPLE.parents[1]
PAGE = ROOT / "docs" / "extending.md"
EXCERPT = re.compile(r"<!-- from (?P<path>\S+) -->\n\n```\w+\n(?P<code>.*?)```", re.DOTALL)
RUN = re.compile(r"\n\n```python\n(?P<code>import.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def printed_by(code: str) -> str:
    said = StringIO()
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(said):
        exec(compile(code, str(PAGE), "exec"), {})
    return said.getvalue()


def test_excerpts_are_the_code_of_the_example() -> None:
    found = list(EXCERPT.finditer(PAGE.read_text(encoding="utf-8")))
    assert {Path(each["path"]).stem for each in found} == {
        "pyproject",
        "policy",
        "mechanism",
        "store",
        "summarizer",
    }
    for each in found:
        assert each["code"] in (ROOT / each["path"]).read_text(encoding="utf-8"), each["path"]


def test_every_block_of_code_is_an_excerpt_or_runs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    excerpts = [each for each in EXCERPT.finditer(page) if not each["path"].endswith(".toml")]
    assert page.count("```python") == len(excerpts) + len(RUN.findall(page))


def test_what_it_runs_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_example(tmp_path / "site")
    put_on_path(monkeypatch, tmp_path / "site", PATH)
    (example,) = RUN.finditer(PAGE.read_text(encoding="utf-8"))
    try:
        assert printed_by(example["code"]) == example["printed"]
    finally:
        look_again()


def rewrite() -> None:
    """Put what the example prints into the page."""

    def run(found: "re.Match[str]") -> Any:
        return f"\n\n```python\n{found['code']}```\n\n```text\n{printed_by(found['code'])}```"

    with tempfile.TemporaryDirectory() as folder:
        add_example(Path(folder))
        sys.path[:0] = [folder, str(PATH)]
        PAGE.write_text(RUN.sub(run, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
