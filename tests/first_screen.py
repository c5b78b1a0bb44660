"""What the commands of the README's first screen print; run `python -m tests.first_screen` to write it there anew."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TRANSCRIPTS = ROOT.parent / "shared" / "transcripts" / "claude-code"
"""Recorded sessions of Claude Code from public projects; they are not part of the repository."""
_BLOCK = "<!-- first screen: {name} -->\n\n```console\n"
_COLUMNS = 100
_AUDIT_LINES = 4
_CLIENT = """
import anthropic

client = anthropic.Anthropic(api_key="sk-test")
read = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}}
messages = [{"role": "user", "content": "Look through the project."}]
while True:
    answer = client.messages.create(model="claude-opus-4-5", max_tokens=900, system="You work.", tools=[read], messages=messages)
    messages.append({"role": "assistant", "content": answer.content})
    asked = [block for block in answer.content if block.type == "tool_use"]
    if not asked:
        break
    text = "".join(f"{line}: def work_{line}(): return {asked[0].input['path']!r}\\n" for line in range(120))
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": asked[0].id, "content": text}]})
"""
_CALLS = 60
_NAME = "20261119_181921_ff63503654c47f387c8bc0"


def _answer(seen: Seen) -> Answer:
    """Play the model of the scripted agent: it reads one file after another."""
    newest = re.findall(rb"src/part_([0-9]+)[.]py", seen.raw)
    number = max(map(int, newest), default=0) + 1
    if number >= _CALLS:
        return Say(text="Done.")
    return CallTools(calls=(Call(name="read", arguments={"path": f"src/part_{number}.py"}),))


def printed(*arguments: str, **env: str) -> str:
    """Return what a command prints, both streams, as a terminal of 100 columns shows it."""
    done = subprocess.run(
        [sys.executable, "-m", "lowwater", *arguments],
        env={**os.environ, "COLUMNS": str(_COLUMNS), "NO_COLOR": "1", **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())


def audit() -> str:
    """Return the first lines of the audit of the recorded sessions."""
    with tempfile.TemporaryDirectory() as cache:
        said = printed("audit", str(TRANSCRIPTS), XDG_CACHE_HOME=cache)
    return "$ lowwater audit\n" + "\n".join(said.splitlines()[:_AUDIT_LINES])


def run_and_rewind() -> Mapping[str, str]:
    """Return the bill of a scripted agent of sixty calls that `lowwater run` starts, and what undoing its compaction prints."""
    with tempfile.TemporaryDirectory() as folder, Provider(_answer) as provider:
        env = {
            "ANTHROPIC_BASE_URL": provider.anthropic_base_url,
            "LOWWATER_STORE": f"sqlite:///{folder}/kept.db",
        }
        bill = printed("run", "--no-summaries", "--", sys.executable, "-c", _CLIENT, **env)
        undone = printed("rewind", **env).splitlines()
    return {
        "run": f"$ lowwater run -- claude\n…\n{_tidy(bill.partition(chr(10) * 2)[2])}",
        "rewind": "$ lowwater rewind\n" + _tidy("\n".join([*undone[:2], "…", *undone[-2:]])),
    }


def _tidy(said: str) -> str:
    """Return output without what differs from run to run: a session's name, when it changed, and the widths of these columns."""
    said = re.sub(r"\d{8}_\d{6}_[0-9a-f]+(…?)", lambda name: f"{_NAME[:35]}…" if name[1] else _NAME, said)
    said = re.sub(r"(?m)^session +model", f"{'session':38}model", said)
    return re.sub(
        r"(?m) +(?:just now|\d+ \w+ ago)$", "  2 s ago", re.sub(r"(?m) +changed$", "  changed", said)
    ).strip("\n")


def on_page(name: str) -> str:
    """Return what the README says that a command prints."""
    return README.read_text(encoding="utf-8").partition(_BLOCK.format(name=name))[2].partition("\n```")[0]


def rewrite() -> None:
    """Put what each command prints into the README."""
    for name, said in {"audit": audit(), **run_and_rewind()}.items():
        before, mark, after = README.read_text(encoding="utf-8").partition(_BLOCK.format(name=name))
        rest = after[after.index("```") :]
        README.write_text(f"{before}{mark}{said}\n{rest}", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
