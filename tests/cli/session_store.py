"""Sessions in a real SQLite file, and the real commands on them."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from lowwater import Lowwater
from lowwater.cli.app import app
from lowwater.stores.addresses import open_store

MODEL = "claude-haiku-4-5"
SECRET = "sk-ant-api03-Qm9vR2x1ZVphcDdYeTJLd1AzTnQ4VnM1Y0RmSGpM"
SYSTEM = "\n".join(f"Rule {number}." for number in range(1, 10))
TOOLS = [{"name": "bash", "description": "Runs it.", "input_schema": {"type": "object", "properties": {}}}]


def address(store: Path) -> str:
    return f"sqlite:///{store}"


def sessions(store: Path, *args: str, data: bytes | None = None) -> Result:
    """Run `lowwater sessions` with these arguments on a store."""
    return CliRunner().invoke(app, ["sessions", *args, "--store", address(store)], input=data)


def told(store: Path, *args: str) -> Any:
    """Run it with --json and return what it says."""
    done = sessions(store, *args, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def error_of(done: Result) -> str:
    """Return the one sentence that a command failed with."""
    assert done.exit_code == 1, done.output
    return str(done.exception)


def answer(text: str, *, read: int, model: str = MODEL) -> dict[str, object]:
    """Return a model's answer as its provider sends it."""
    usage = {
        "input_tokens": 7,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 900,
        "output_tokens": 11,
    }
    content = [{"type": "text", "text": text}]
    return {"type": "message", "role": "assistant", "model": model, "content": content, "usage": usage}


def talk(
    store: Path, name: str, *, turns: int = 12, model: str = MODEL, title: str = ""
) -> list[dict[str, Any]]:
    """Have a conversation with recorded turns, a compaction and a checkpoint; return what the client holds."""
    library = Lowwater(model=model, store=address(store))
    session = library.session(name, title=title)
    held: list[dict[str, Any]] = []
    for number in range(turns):
        held.append({"role": "user", "content": f"step {number}: {f'word{number} ' * 2500}"})
        session.prepare(held, system=SYSTEM, tools=TOOLS)
        said = answer(f"done {number}", read=900 * number, model=model)
        session.record(said)
        held.append({"role": "assistant", "content": said["content"]})
    assert turns < 10 or session.compress() is not None
    session.checkpoint("here")
    library.close()
    return held


def names(store: Path) -> list[str]:
    """Return the names of all sessions that a store has."""
    opened = open_store(address(store))
    try:
        return [each.name for each in opened.sessions()]
    finally:
        opened.close()
