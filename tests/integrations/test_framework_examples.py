"""The examples run as they are, the page shows them as they are, and a missing framework is named in a sentence."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
EXAMPLES = ("langchain_agent.py", "openai_agents_runner.py", "pydantic_ai_agent.py")
FRAMEWORKS = {
    "langchain": ("langchain", "langchain"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}


def answer(seen: Seen) -> Answer:
    """Read the log, then say what it says."""
    last = seen.body["messages"][-1]
    if last["role"] == "user":
        return CallTools((Call("read_log", {"service": "mail"}),))
    return Say(
        f"It was this: {last['content'] if isinstance(last['content'], str) else last['content'][0]['text']}"
    )


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"LOWWATER_STORE": "memory:", "OPENAI_API_KEY": "k"} | variables
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_without_a_key(name: str) -> None:
    with Provider(answer) as provider:
        done = run(str(ROOT / "examples" / name), OPENAI_BASE_URL=provider.openai_base_url, MODEL="gpt-5.5")
        notices = [line for line in done.stderr.splitlines() if "summaries are extracted" not in line]
        assert (done.returncode, notices) == (0, [])
        assert provider.refusals == ()
    assert "It was this: mail: 12 connections refused" in done.stdout
    assert "monday · gpt-5.5 · rent-or-buy" in done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_some_ten_lines_and_on_the_page(name: str) -> None:
    code = (ROOT / "examples" / name).read_text(encoding="utf-8")
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert found is not None
    assert found[1] == code
    ours = [line for line in code.splitlines() if "lowwater" in line.lower() and not line.startswith('"""')]
    assert len(ours) <= 10
    assert len(code.splitlines()) <= 32


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_a_missing_framework_is_named_with_its_extra(module: str) -> None:
    package, extra = FRAMEWORKS[module]
    code = (
        f"import sys\nsys.modules[{package!r}] = None\n"
        f"try:\n    import lowwater.integrations.{module}\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    said = run("-c", code).stdout
    assert said.startswith("BadSetting ")
    assert f"pip install 'lowwater[{extra}]'" in said


def test_nothing_of_a_framework_is_imported_with_the_library() -> None:
    code = "import sys, lowwater, lowwater.session.library, lowwater.integrations\nprint(*sys.modules)"
    modules = set(run("-c", code).stdout.split())
    assert not modules & {"langchain", "langchain_core", "agents", "pydantic_ai"}
