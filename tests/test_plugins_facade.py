"""Documentation and examples import only what is promised: `lowwater`, `lowwater.plugins`, `lowwater.testing`, `lowwater.integrations`."""

import re
from pathlib import Path

import pytest

import lowwater.plugins

ROOT = Path(__file__).parents[1]
PROMISED = ("lowwater", "lowwater.plugins", "lowwater.testing", "lowwater.integrations")
EXPLAINED_BY_ITS_CODE = {"docs/economics.md"}
"""Pages about Lowwater's own arithmetic, which show the code that does it."""
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


IMPORT = re.compile(r"^\s*(?:from|import) (lowwater(?:\.\w+)*)\b", re.MULTILINE)


def imported(code: str) -> set[str]:
    return set(IMPORT.findall(code))


def is_promised(module: str) -> bool:
    return module in PROMISED or module.startswith(("lowwater.testing.", "lowwater.integrations."))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT))
)
def test_examples_import_nothing_deeper(path: Path) -> None:
    assert not [name for name in imported(path.read_text(encoding="utf-8")) if not is_promised(name)]


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_pages_import_nothing_deeper(path: Path) -> None:
    if str(path.relative_to(ROOT)) in EXPLAINED_BY_ITS_CODE:
        pytest.skip("it explains Lowwater's own code")
    blocks = PYTHON.findall(path.read_text(encoding="utf-8"))
    deep = {name for block in blocks for name in imported(block) if not is_promised(name)}
    assert not deep, deep


def test_the_facade_promises_what_it_imports() -> None:
    assert sorted(lowwater.plugins.__all__, key=str.lower) == sorted(
        {
            name
            for name, value in vars(lowwater.plugins).items()
            if not name.startswith("_") and type(value).__name__ != "module"
        },
        key=str.lower,
    )
    assert lowwater.plugins.VERSION == 1
