"""Hermes' `AIAgent` with its session database, in a home of its own; its list is what it returned the turn before."""

import atexit
import json
import os
import shutil
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.frameworks.task import SYSTEM, TOOL, TOOL_WORDS, facts_until, log_of, question
from bench.frameworks.worker import Report, Told, run

PLUGIN = "lowwater"
SCHEMA = {
    "name": TOOL,
    "description": TOOL_WORDS,
    "parameters": {
        "type": "object",
        "properties": {"service": {"type": "string"}, "day": {"type": "integer"}},
        "required": ["service", "day"],
    },
}


def make_home(told: Told, **compression: Any) -> Path:  # noqa: ANN401 - Hermes' own settings
    """Return a new home of Hermes that is configured as `told`; it must stand in HERMES_HOME before Hermes is imported."""
    home = Path(tempfile.mkdtemp(prefix="hermes-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    config: dict[str, Any] = {
        "model": {
            "default": told.model,
            "provider": "custom",
            "base_url": told.openai_url,
            "api_key": "k",
            "context_length": told.window,
        },
        "compression": {"enabled": told.compaction != "none", **compression},
    }
    if told.compaction == "lowwater":
        config |= {"context": {"engine": PLUGIN}, "plugins": {"enabled": [PLUGIN]}}
        plugin = home / "plugins" / PLUGIN
        plugin.mkdir(parents=True)
        (plugin / "plugin.yaml").write_text(json.dumps({"name": PLUGIN, "version": "0"}))
        (plugin / "__init__.py").write_text("from lowwater.integrations.hermes import register\n")
    (home / "config.yaml").write_text(json.dumps(config))
    return home


def offer_tool() -> None:
    """Put the task's tool into Hermes' registry."""
    registry = import_module("tools.registry").registry  # Hermes' own package `tools`, not ours

    def handle(arguments: dict[str, Any], **_: object) -> str:
        return log_of(arguments["service"], int(arguments["day"]))

    registry.register(name=TOOL, toolset="bench", schema=SCHEMA, handler=handle)


def agent_for(told: Told, home: Path, session_id: str = "bench") -> Any:  # noqa: ANN401 - Hermes is not installed where this is checked
    from hermes_state import SessionDB  # type: ignore[import-not-found]  # noqa: PLC0415 - only there
    from run_agent import AIAgent  # type: ignore[import-not-found]  # noqa: PLC0415 - only there

    return AIAgent(
        base_url=told.openai_url,
        api_key="k",
        provider="custom",
        api_mode="chat_completions",
        model=told.model,
        enabled_toolsets=["bench", "context_engine"],
        quiet_mode=True,
        skip_context_files=True,
        skip_memory=True,
        tool_delay=0.0,
        max_tokens=2_000,
        session_db=SessionDB(home / "state.db"),
        session_id=session_id,
    )


def play(told: Told, report: Report) -> None:
    report.version = version("hermes-agent")
    home = make_home(told)
    os.environ["HERMES_HOME"] = str(home)
    os.environ.pop("LOWWATER_STORE", None)
    offer_tool()
    agent = agent_for(told, home)
    engine = agent.context_compressor
    report.how = type(engine).__name__
    history: list[dict[str, Any]] = []
    for step in range(1, told.turns + 1):
        done = agent.run_conversation(question(step), system_message=SYSTEM, conversation_history=history)
        if done.get("failed") or done.get("error"):
            report.error = str(done.get("error"))[:300]
            break
        history = done["messages"]
        report.turns = step
        report.compactions = engine.compression_count
        report.kept = kept_of(engine, history, step)


def kept_of(engine: Any, history: list[dict[str, Any]], step: int) -> int:  # noqa: ANN401 - likewise
    """Return how many tool results are still there whole: in Lowwater's ledger, or in Hermes' own list."""
    whole = engine.session.history() if hasattr(engine, "session") else history
    held = "\n".join(str(message.get("content")) for message in whole)
    return sum(fact in held for fact in facts_until(step))


if __name__ == "__main__":
    run(play)
