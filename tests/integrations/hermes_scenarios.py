"""Conversations of a real `AIAgent` with Lowwater as its context engine; run by `test_hermes_plugin.py` in Hermes' environment.

Each prints what it saw as one line of JSON.
"""

import copy
import json
import os
import sys
from typing import Any

from bench.frameworks.task import SYSTEM, facts_until, question
from bench.frameworks.worker import Told
from bench.frameworks.workers.hermes_agent import agent_for, make_home, offer_tool
from lowwater.session.internals import internals

Facts = dict[str, Any]
MODEL, OTHER = "gpt-6.1-sol", "gpt-6.1-terra"


class Conversation:
    """One home of Hermes, and agents in it."""

    def __init__(self, base_url: str, *, window: int = 64_000, **compression: Any) -> None:
        self.told = Told(base_url=base_url, compaction="lowwater", turns=0, model=MODEL, window=window)
        self.home = make_home(self.told, **compression)
        os.environ["HERMES_HOME"] = str(self.home)
        os.environ.pop("LOWWATER_STORE", None)
        offer_tool()
        self.ended: list[str] = []
        self.history: list[dict[str, Any]] = []
        self.open("bench")

    def open(self, session_id: str) -> None:
        """Go on with another agent, as a new process would."""
        self.agent = agent_for(self.told, self.home, session_id)
        self.engine = self.agent.context_compressor
        ending = self.engine.on_session_end

        def on_session_end(session_id: str, messages: list[dict[str, Any]]) -> None:
            self.ended.append(session_id)
            ending(session_id, messages)

        self.engine.on_session_end = on_session_end

    def say(self, *words: str) -> Facts:
        for each in words:
            done = self.agent.run_conversation(each, system_message=SYSTEM, conversation_history=self.history)
            assert not done.get("failed"), done.get("error")
            self.history = done["messages"]
        return dict(done)

    def steps(self, first: int, last: int) -> Facts:
        return self.say(*(question(step) for step in range(first, last + 1)))

    def facts(self, step: int) -> Facts:
        """What the session holds of everything that was read by a turn, and what its ledger went through."""
        session = self.engine.session
        held = "\n".join(str(message.get("content")) for message in session.history())
        return {
            "name": session.name,
            "facts": len(facts_until(step)),
            "held": sum(fact in held for fact in facts_until(step)),
            "ids": sorted({self.agent.session_id, "bench"}),
            "published": self.engine.compression_count,
            "compactions": session.status().compaction_count,
            "ended": self.ended,
            "rewound": sum(type(entry).__name__ == "Rewound" for entry in internals(session).ledger.entries),
            "view": len(session.view()),
            "listed": len(self.history),
            "cost": session.status().totals.cost,
        }


def in_place(base_url: str) -> Facts:
    """A long conversation that keeps its id, then a new agent that goes on with what Hermes' database holds."""
    talk = Conversation(base_url)
    talk.steps(1, 36)
    before = talk.facts(36)
    rows = talk.agent._session_db.get_messages_as_conversation("bench")
    talk.history = rows
    talk.open("bench")
    talk.steps(37, 56)
    return {"before": before, "after": talk.facts(56), "rows": len(rows)}


def rotation(base_url: str) -> Facts:
    """A long conversation whose id Hermes changes at each compaction, then a new agent that goes on with the last id."""
    talk = Conversation(base_url, in_place=False)
    talk.steps(1, 36)
    before, last = talk.facts(36), talk.agent.session_id
    talk.history = talk.agent._session_db.get_messages_as_conversation(last)
    talk.open(last)
    talk.steps(37, 38)
    return {"before": before, "after": talk.facts(38), "last": last}


def copies(base_url: str) -> Facts:
    """The engine that was registered, the copy that the agent has, and a copy of that."""
    from agent.context_engine import ContextEngine  # type: ignore[import-not-found]
    from hermes_cli.plugins import get_plugin_context_engine  # type: ignore[import-not-found]

    talk = Conversation(base_url)
    talk.steps(1, 2)
    registered = get_plugin_context_engine()
    other = copy.deepcopy(talk.engine)
    other.update_model(OTHER, 100_000)
    other.on_session_start("another")
    return {
        "is_engine": isinstance(registered, ContextEngine),
        "name": registered.name,
        "is_copy": registered is not talk.engine and type(registered) is type(talk.engine),
        "window": [talk.engine.context_length, other.context_length],
        "model": [internals(talk.engine.session).route.model, internals(other.session).route.model],
        "names": [talk.engine.session.name, other.session.name],
        "messages": [len(talk.engine.session.history()), len(other.session.history())],
    }


def switch(base_url: str) -> Facts:
    """A larger window, then the model with the smaller one, and the first again: the view follows before the next call."""
    talk = Conversation(base_url, window=128_000)
    config = talk.home / "config.yaml"
    here = {"name": "here", "base_url": talk.told.openai_url, "models": {OTHER: {"context_length": 64_000}}}
    config.write_text(json.dumps({**json.loads(config.read_text()), "custom_providers": [here]}))
    talk.steps(1, 26)
    before = talk.facts(26) | {"prompt": talk.engine.session.status().prompt}
    talk.agent.switch_model(OTHER, "custom", "k", talk.told.openai_url, "chat_completions")
    talk.steps(27, 28)
    after = talk.facts(28)
    status = talk.engine.session.status()
    return {
        "before": before,
        "after": after,
        "route": internals(talk.engine.session).route.model,
        "context": status.context,
        "prompt": status.prompt,
        "shown": talk.engine.context_length,
    }


def told_by_refusal(base_url: str) -> Facts:
    """Hermes believes in a larger window than the provider has: the refusal tells, and the conversation goes on."""
    talk = Conversation(base_url, window=128_000)
    talk.steps(1, 24)
    return talk.facts(24) | {"context": talk.engine.session.status().context}


def recall(base_url: str) -> Facts:
    """The model searches for what was compacted; a person compacts by hand, with a focus; a new conversation begins."""
    talk = Conversation(base_url)
    offered = sorted(talk.agent._context_engine_tool_names)
    talk.steps(1, 22)
    answer = talk.say("Recall what step 2 read.")
    told = [message for message in talk.history if message.get("role") == "tool"][-1]["content"]
    listed = len(talk.history)
    talk.history, _ = talk.agent._compress_context(talk.history, SYSTEM, focus_topic="billing", force=True)
    by_hand = talk.facts(22) | {"was": listed}
    talk.steps(23, 24)
    unknown = json.loads(talk.engine.handle_tool_call("lowwater_nothing", {}))
    after = talk.facts(24)
    status = talk.engine.get_status()
    talk.agent.session_id = "fresh"
    talk.agent.reset_session_state()
    talk.history = []
    talk.steps(1, 1)
    return {
        "offered": offered,
        "answer": answer["final_response"],
        "told": json.loads(told),
        "by_hand": by_hand,
        "after": after,
        "unknown": unknown,
        "status": status,
        "fresh": [
            talk.engine.session.name,
            len(talk.engine.session.history()),
            talk.engine.compression_count,
        ],
    }


def switched_off(base_url: str) -> Facts:
    """Hermes' own `compression.enabled: false` holds for Lowwater too."""
    talk = Conversation(base_url, enabled=False)
    talk.steps(1, 12)
    return talk.facts(12)


def without_calls(base_url: str) -> Facts:
    """Where a Hermes lets no plugin stand around a call, its own count decides at the threshold of the settings."""
    talk = Conversation(base_url)
    from hermes_cli.plugins import get_plugin_manager

    get_plugin_manager()._middleware.clear()
    talk.engine._wraps_calls = False
    talk.steps(1, 20)
    talk.agent.shutdown_memory_provider(talk.history)
    return talk.facts(20)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](sys.argv[2])) + "\n")
