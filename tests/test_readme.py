"""Code in the README runs."""

import re
from pathlib import Path

import anthropic
import pytest

from lowwater.testing.provider import Provider

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


PRINTED = dict(
    re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL
    )
)
"""What the page says that a block prints."""


def test_there_is_an_example_of_at_most_twenty_odd_lines() -> None:
    assert BLOCKS
    assert all(len(block.splitlines()) <= 26 for block in BLOCKS)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block {number}" for number in range(1, len(BLOCKS) + 1)])
def test_readme_code_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Names the reader's own program would have stand ready: a client, messages, a system prompt, tools."""
    with Provider() as provider:
        client = anthropic.Anthropic(base_url=provider.anthropic_base_url, api_key="k")
        given = {
            "client": client,
            "messages": [{"role": "user", "content": "What is in notes.txt?"}],
            "system": "Be brief.",
            "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
        }
        exec(compile(block, "README.md", "exec"), given)
        client.close()
        assert not provider.refusals
    said = capsys.readouterr().out
    assert said
    assert PRINTED.get(block, said) == said
