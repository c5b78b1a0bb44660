"""Pages whose code runs: each example prints what the page says, and the later ones build on the earlier."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def examples(page: Path) -> Iterator[tuple[str, str]]:
    """Yield what the page says that each example prints, and what it prints."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        try:
            for example in EXAMPLE.finditer(page.read_text(encoding="utf-8")):
                said = StringIO()
                with redirect_stdout(said):
                    exec(compile(example["code"], str(page), "exec"), names)
                yield example["printed"], said.getvalue()
        finally:
            if "client" in names:
                names["client"].close()
            if "provider" in names:
                names["provider"].__exit__(None, None, None)


def check(page: Path, *, at_least: int = 1) -> None:
    """Fail unless every example of the page prints what it says."""
    ran = list(examples(page))
    assert len(ran) == page.read_text(encoding="utf-8").count("```python") >= at_least
    for on_page, printed in ran:
        assert on_page == printed


def rewrite(page: Path) -> None:
    """Put what the examples print into the page."""
    printed = iter([said for _, said in examples(page)])
    text = page.read_text(encoding="utf-8")
    page.write_text(
        EXAMPLE.sub(lambda found: f"```python\n{found['code']}```\n\n```text\n{next(printed)}```", text),
        encoding="utf-8",
    )


if __name__ == "__main__":
    os.environ["LOWWATER_STORE"] = "memory:"
    for name in sys.argv[1:]:
        rewrite(Path(name).resolve())
