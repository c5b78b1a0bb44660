"""What the site has beyond docs/: the measurements of bench/README.md as a page, and links to it that work in both places."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_MEASURED = "measured.md"
_BENCH = re.compile(r"\]\((?:\.\./)+bench/README\.md")
_SOURCE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?:src|bench|examples|tools|tests)/[^)]*\)")
_OUT = re.compile(r"\]\((?:\.\./)+(README|ARCHITECTURE|CONTRIBUTING|GLOSSARY|CHANGELOG)\.md[^)]*\)")


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401 - mkdocs' own
    """Add the measurements."""
    text = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\(\.\./docs/", "](", text)
    files.append(File.generated(config, _MEASURED, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:  # noqa: ANN401 - mkdocs' own
    """Lead links out of docs/ to where the site has it, or make them words."""
    up = "../" * page.file.src_uri.count("/")
    markdown = _BENCH.sub(f"]({up}{_MEASURED}", markdown)
    markdown = _SOURCE.sub(r"`\1`", markdown)
    return _OUT.sub(r"](" + up + "index.md)", markdown)
