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

from bench.frameworks.task import LOGS, Task, Tool, task_of
from bench.frameworks.worker import Report, Told, run

PLUGIN = "lowwater"


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


def offer_tools(*tools: Tool) -> None:
    """Put the task's tools into Hermes' registry."""
    registry = import_module("tools.registry").registry  # Hermes' own package `tools`, not ours
    for tool in tools:

        def handle(arguments: dict[str, Any], *, of: Tool = tool, **_: object) -> str:
            return of.call(arguments)

        schema = {"name": tool.name, "description": tool.words, "parameters": tool.schema}
        registry.register(name=tool.name, toolset="bench", schema=schema, handler=handle)


def offer_tool() -> None:
    """Put the generated task's tool into Hermes' registry."""
    offer_tools(LOGS)


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
    task = task_of(told.turns, told.recorded)
    offer_tools(*task.tools)
    agent = agent_for(told, home)
    engine = agent.context_compressor
    report.how = type(engine).__name__
    history: list[dict[str, Any]] = []
    for step, question in enumerate(task.questions, start=1):
        done = agent.run_conversation(question, system_message=task.system, conversation_history=history)
        if done.get("failed") or done.get("error"):
            report.error = str(done.get("error"))[:300]
            break
        history = done["messages"]
        report.turns = step
        report.compactions = engine.compression_count
        report.kept = kept_of(engine, history, task, step)


def kept_of(engine: Any, history: list[dict[str, Any]], task: Task, step: int) -> int:  # noqa: ANN401 - likewise
    """Return how many tool results are still there whole: in Lowwater's ledger, or in Hermes' own list."""
    whole = engine.session.history() if hasattr(engine, "session") else history
    held = "\n".join(str(message.get("content")) for message in whole)
    return sum(fact in held for fact in task.facts_until(step))


if __name__ == "__main__":
    run(play)
