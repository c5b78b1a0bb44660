"""The real aider through the gateway: it edits a file, turn after turn, by the variables that the guide names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater.testing.provider import Provider, Say, Seen
from tests.gateway.conftest import MODEL
from tests.gateway.installed_clients import aider
from tests.gateway.serving import served_process

pytestmark = pytest.mark.full

MODELS = [f"anthropic/{MODEL}", "openai/gpt-5.5"]
QUESTIONS = "Let f return 2.\nLet f return 3.\n"
EDIT = """I change it.

a.py
```python
<<<<<<< SEARCH
def f(): return {old}
=======
def f(): return {new}
>>>>>>> REPLACE
```
"""


def edits(seen: Seen) -> Say:
    """Change the file as the newest question wants."""
    new = 3 if "Let f return 3." in str(seen.body) else 2
    return Say(text=EDIT.format(old=new - 1, new=new))


def asked(folder: Path, model: str, *before: str, **env: str) -> str:
    """Ask twice, and return what was printed."""
    for command in (["init", "-q"], ["config", "user.email", "a@b.c"], ["config", "user.name", "a"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "a.py").write_text("def f(): return 1\n")
    options = ["--edit-format", "diff", "--yes-always", "--no-auto-commits", "--no-gitignore"]
    options += ["--no-check-update", "--no-analytics", "--no-show-model-warnings", "--no-show-release-notes"]
    done = subprocess.run(
        [*before, str(aider()), "--model", model, *options, "a.py"],
        input=QUESTIONS,
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder.parent),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "ANTHROPIC_API_KEY": "sk-of-a-test",
            "OPENAI_API_KEY": "sk-of-a-test",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2_000:]}\n{done.stderr[-2_000:]}"
    assert (folder / "a.py").read_text() == "def f(): return 3\n", done.stdout[-2_000:]
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "home" / "work"
    place.mkdir(parents=True)
    return place


@pytest.mark.parametrize("model", MODELS)
def test_aider_edits_behind_run(model: str, folder: Path, tmp_path: Path) -> None:
    run = [sys.executable, "-m", "lowwater", "run", "--store", f"sqlite:///{tmp_path}/kept.db", "--"]
    with Provider(edits) as provider:
        url = provider.anthropic_base_url
        printed = asked(folder, model, *run, ANTHROPIC_BASE_URL=url, OPENAI_BASE_URL=f"{url}/v1")
        assert provider.refusals == ()
        assert len(provider.requests) >= 2
    assert " calls for " in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("model", MODELS)
def test_aider_edits_in_front_of_serve(model: str, folder: Path, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    with (
        Provider(edits) as provider,
        served_process(provider.anthropic_base_url, store, "--no-log") as gateway,
    ):
        url = gateway.url
        asked(folder, model, ANTHROPIC_API_BASE=url, OPENAI_API_BASE=f"{url}/v1")
        assert provider.refusals == ()
        assert len(provider.requests) >= 2
