"""Conversations of a real Strands `Agent` with Lowwater as its conversation manager; run by `test_strands_agent.py` in its environment.

Each prints what it saw as one line of JSON.
"""

import asyncio
import atexit
import json
import shutil
import sys
import tempfile
from typing import Any

from strands import Agent, tool  # type: ignore[import-not-found]  # in its own environment
from strands.models.openai import OpenAIModel  # type: ignore[import-not-found]  # likewise
from strands.session.file_session_manager import FileSessionManager  # type: ignore[import-not-found]  # likewise

from bench.frameworks.task import SYSTEM, facts_until, question
from bench.frameworks.workers.strands_agent import read_log
from lowwater import Lowwater
from lowwater.integrations.strands import LowwaterConversationManager
from lowwater.session.internals import internals

MODEL = "gpt-6.1-sol"
Facts = dict[str, Any]


def model_at(base_url: str, *, window: int | None = 64_000, model: str = MODEL) -> Any:
    return OpenAIModel(
        client_args={"base_url": f"{base_url}/v1", "api_key": "k", "max_retries": 0},
        model_id=model,
        params={"max_tokens": 2_000},
        **({"context_window_limit": window} if window else {}),
    )


def agent_at(base_url: str, manager: Any, *, window: int | None = 64_000, **more: Any) -> Any:
    tools = [tool(name="read_log")(read_log), *more.pop("tools", ())]
    return Agent(
        model=model_at(base_url, window=window),
        system_prompt=SYSTEM,
        tools=tools,
        conversation_manager=manager,
        callback_handler=None,
        **more,
    )


def facts(manager: Any, agent: Any, step: int) -> Facts:
    session = manager.session(agent)
    held, whole = str(agent.messages), "\n".join(map(str, session.history()))
    status = session.status()
    return {
        "name": session.name,
        "facts": len(facts_until(step)),
        "listed": sum(fact in held for fact in facts_until(step)),
        "held": sum(fact in whole for fact in facts_until(step)),
        "compactions": status.compaction_count,
        "context": status.context,
        "model": internals(session).route.model,
        "messages": [len(agent.messages), len(session.history()), len(session.view())],
        "rewound": sum(
            type(entry).__name__ in ("Rewound", "TakenBack") for entry in internals(session).ledger.entries
        ),
        "cost": status.totals.cost,
    }


def kept_on_disk(base_url: str) -> Facts:
    """A session manager keeps the agent's messages; a second agent and a second library go on with both."""
    folder = tempfile.mkdtemp(prefix="strands-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = f"sqlite:///{folder}/lowwater.db"
    seen = []
    for first, last in ((1, 16), (17, 28)):
        manager = LowwaterConversationManager(Lowwater(model=MODEL, base_url=base_url, store=address))
        keeper = FileSessionManager(session_id="talk", storage_dir=folder)
        agent = agent_at(base_url, manager, agent_id="a", session_manager=keeper)
        for step in range(first, last + 1):
            agent(question(step))
        seen.append(facts(manager, agent, last))
    return {"first": seen[0], "second": seen[1]}


def streamed(base_url: str) -> Facts:
    """Two agents with one manager, streaming at once on one event loop, each in a session of its own."""
    manager = LowwaterConversationManager(Lowwater(model=MODEL, base_url=base_url, store="memory:"))
    agents = [agent_at(base_url, manager), agent_at(base_url, manager)]

    async def talk(agent: Any) -> str:
        said = ""
        for step in range(1, 4):
            async for event in agent.stream_async(question(step)):
                said += event.get("data", "") if isinstance(event, dict) else ""
        return said

    async def both() -> list[str]:
        return list(await asyncio.gather(*map(talk, agents)))

    said = asyncio.run(both())
    return {"said": said, "facts": [facts(manager, agent, 3) for agent in agents]}


def told_by_refusal(base_url: str) -> Facts:
    """Nobody told the window: the refusal does."""
    manager = LowwaterConversationManager(Lowwater(model=MODEL, base_url=base_url, store="memory:"))
    agent = agent_at(base_url, manager, window=None)
    for step in range(1, 25):
        agent(question(step))
    return facts(manager, agent, 24)


def recall_and_switch(base_url: str) -> Facts:
    """The model recalls what was compacted; then another model goes on."""
    manager = LowwaterConversationManager(Lowwater(model=MODEL, base_url=base_url, store="memory:"))
    agent = agent_at(base_url, manager, tools=manager.tools)
    for step in range(1, 25):
        agent(question(step))
    answer = str(agent("Recall what step 2 read."))
    told = agent.messages[-2]["content"][0]["toolResult"]["content"][0]["text"]
    agent.model = model_at(base_url, model="gpt-6.1-terra")
    agent(question(25))
    return {"answer": answer, "told": told, **facts(manager, agent, 25)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](sys.argv[2])) + "\n")
