"""Code in the README and in the overview runs, and the README's first screen is what the commands print."""

import re
from pathlib import Path
from typing import Any

import anthropic
import pytest
import typer

from lowwater.testing.provider import Provider
from tests.first_screen import README, ROOT, TRANSCRIPTS, audit, on_page, run_and_rewind

PAGES = (README, ROOT / "docs" / "overview.md")
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
PRINTED = dict(re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, flags=re.DOTALL))
"""What the pages say that a block prints."""


def test_there_is_an_example_of_at_most_twenty_odd_lines() -> None:
    assert BLOCKS
    assert all(len(block.splitlines()) <= 26 for block in BLOCKS)


def test_the_readme_is_short() -> None:
    """What does not help a new user within two minutes is in docs/."""
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert next(at for at, line in enumerate(lines) if "pip install lowwater" in line) <= 6
    assert "docs/pictures/" in "".join(lines[:70])


def test_the_bill_and_the_undo_of_the_first_screen_are_what_the_commands_print() -> None:
    assert {name: on_page(name) for name in ("run", "rewind")} == run_and_rewind()


@pytest.mark.full
@pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="the recorded sessions are not here")
def test_the_audit_of_the_first_screen_is_what_the_command_prints() -> None:
    assert on_page("audit") == audit()


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


def test_the_guide_for_langchain_makes_an_agent_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_core.language_models import FakeListChatModel

    monkeypatch.setenv("LOWWATER_STORE", f"sqlite:///{tmp_path / 'kept.db'}")
    guide = (ROOT / "docs" / "guides" / "my-langchain-agent-overflows.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    names: dict[str, Any] = {"model": FakeListChatModel(responses=["It fits."]), "tools": []}
    exec(compile(block, "guide", "exec"), names)
    said = names["agent"].invoke(
        {"messages": [{"role": "user", "content": "Does it fit?"}]}, {"configurable": {"thread_id": "one"}}
    )
    assert said["messages"][-1].content == "It fits."


def test_the_commands_of_the_guides_exist() -> None:
    from lowwater.cli.app import app

    guides = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "guides").glob("*.md"))
    known = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    named = re.findall(r"(?m)^\$ lowwater ([a-z]+)(?: ([a-z]+))?", guides)
    assert {"audit", "run", "serve", "recall", "rewind"} <= {command for command, _ in named} <= set(known)
    assert {below for command, below in named if command == "sessions"} <= set(known["sessions"].commands)
