"""Code in docs/sessions.md runs and prints what the page says; run this file to write what it prints anew."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "sessions.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def examples() -> Iterator[tuple[str, str]]:
    """What the page says that each example prints, and what it prints; the later ones build on the earlier."""
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for example in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8")):
            said = StringIO()
            with redirect_stdout(said):
                exec(compile(example["code"], str(PAGE), "exec"), names)
            yield example["printed"], said.getvalue()


def test_every_example_prints_what_the_page_says() -> None:
    ran = list(examples())
    assert len(ran) == PAGE.read_text(encoding="utf-8").count("```python") > 2
    for on_page, printed in ran:
        assert on_page == printed


def rewrite() -> None:
    """Put what the examples print into the page."""
    printed = iter([said for _, said in examples()])
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        EXAMPLE.sub(lambda found: f"```python\n{found['code']}```\n\n```text\n{next(printed)}```", page),
        encoding="utf-8",
    )


if __name__ == "__main__":
    os.environ["LOWWATER_STORE"] = "memory:"
    rewrite()
