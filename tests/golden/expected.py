"""What is recorded of each conversation and log, and the files that keep it."""

import json
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.golden.command_line import json_of
from tests.golden.conversations import (
    FROZEN,
    HERE,
    RECORDED,
    TRANSCRIPTS,
    Conversation,
    as_recording,
    frozen,
    name_of,
    recorded,
)
from tests.golden.player import Player, Texts, runs_of

Tree = Any

FORMATS = ("anthropic", "openai_chat", "openai_responses")
LOGGED = ("coding-102", "research-202")
"""Frozen conversations of the chat format that are audited and replayed as well."""
AUDITED = (
    "claude-code/entireio-cli-7744721d.jsonl",
    "claude-code/context-evaluator-40656dd9.jsonl",
    "claude-code/git-sync-8ff21ea1.jsonl",
    "codex/agentv-019ed50c.jsonl",
    "codex/git-sync-019d7dbf.jsonl",
    "copilot-cli/agentv-a7982b94.jsonl",
    "gemini-cli/entireio-cli-f7633853.json",
    "swe-agent/ctf__crypto__katy.traj",
)
REPLAYED = (
    "claude-code/entireio-cli-7744721d.jsonl",
    "codex/git-sync-019d7dbf.jsonl",
    "canonical/deer-flow/fe3f7974-1bcb-4a01-a950-79673baafefd.jsonl.gz",
)


def _frozen_output(name: str, folder: Path) -> Tree:
    """Return everything that is recorded of a frozen conversation; `folder` is for files that it takes."""
    conversation, texts = frozen(name), Texts()
    output = _played(conversation, FROZEN.index(name), conversation.format, texts, folder)
    if name in LOGGED:
        (folder / "log.jsonl").write_bytes(as_recording(conversation))
        output["audit"] = json_of("audit", "log.jsonl", "--no-cache", "--json", folder=folder)
        output["replay"] = _replayed("log.jsonl", folder)
    return _plain({**output, "texts": texts.by_digest})


def _recorded_output(path: str, folder: Path) -> Tree:
    """Return digests and numbers of what is recorded of a conversation in the shared folder; it is sent in turn in each format."""
    number, conversation = list(RECORDED).index(path), recorded(path, RECORDED[path])
    played = _played(conversation, number, FORMATS[number % len(FORMATS)], Texts(), folder)
    return _without_text(_plain(played))


def _audited_output(path: str, folder: Path) -> Tree:
    """Return digests and numbers of the audit of a log in the shared folder."""
    return _without_text(
        _plain(json_of("audit", _linked(path, folder), "--no-cache", "--json", folder=folder))
    )


def _replayed_output(path: str, folder: Path) -> Tree:
    """Return digests and numbers of the replay of a log in the shared folder."""
    return _without_text(_plain(_replayed(_linked(path, folder), folder)))


def _played(conversation: Conversation, number: int, sent_as: str, texts: Texts, folder: Path) -> Tree:
    store = folder / "sessions.db"
    runs: Tree = {}
    for run, window in runs_of(conversation, number):
        player = Player(conversation, run, window=window, sent_as=sent_as, store=store, texts=texts)
        runs[run.name] = player.play()
    where = ("--store", f"sqlite:///{store}", "--json")
    for name, noted in runs.items():
        status = json_of("status", name, *where, folder=folder)
        noted["status"] = {key: said for key, said in status.items() if key not in {"models", "summarizers"}}
        noted["compactions"] = json_of("sessions", "history", name, *where, folder=folder)
    every = json_of("status", "--all", *where, folder=folder)
    return {"runs": runs, "efficiency": {key: said for key, said in every.items() if key != "sessions"}}


def _replayed(log: str, folder: Path) -> Tree:
    return json_of("replay", log, "--workers", "1", "--json", folder=folder)


def _linked(path: str, folder: Path) -> str:
    """Return a log of the shared folder by a name that is the same on every machine."""
    (folder / "logs").symlink_to(TRANSCRIPTS)
    return f"logs/{path}"


def _plain(tree: Tree) -> Tree:
    """Return a tree as JSON has it, with thirteen digits of every fraction: the rest depends on the processor."""
    return json.loads(json.dumps(tree), parse_float=lambda text: float(f"{float(text):.13g}"))


def _without_text(tree: Tree) -> Tree:
    """Return a tree whose texts are digests; reason codes stay readable."""
    if isinstance(tree, dict):
        return {key: value if key == "code" else _without_text(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_without_text(value) for value in tree]
    return Texts().note(tree) if isinstance(tree, str) else tree


def _named(kind: str, path: str) -> str:
    return f"{kind}-{name_of(path)}"


IN_REPOSITORY: dict[str, Callable[[Path], Tree]] = {name: partial(_frozen_output, name) for name in FROZEN}
"""What is recorded of the frozen conversations, by name; each is given a folder for the files it takes."""
IN_SHARED_FOLDER: dict[str, Callable[[Path], Tree]] = {
    **{_named("recorded", path): partial(_recorded_output, path) for path in RECORDED},
    **{_named("audit", path): partial(_audited_output, path) for path in AUDITED},
    **{_named("replay", path): partial(_replayed_output, path) for path in REPLAYED},
}
"""The same of what is read from the shared folder."""


def expected(name: str) -> Tree:
    """Return what was recorded under a name; None if nothing was."""
    file = _file(name)
    return json.loads(lzma.decompress(file.read_bytes())) if file.exists() else None


def write_expected(name: str, tree: Tree) -> None:
    """Keep what was recorded under a name."""
    file = _file(name)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(lzma.compress(json.dumps(tree, ensure_ascii=False).encode(), preset=9))


def _file(name: str) -> Path:
    return HERE / "output" / f"{name}.json.xz"
