"""The conversation manager: the agent keeps every message, and the model is sent the view."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from weakref import WeakKeyDictionary

from strands.agent.conversation_manager import (  # type: ignore[import-not-found]  # only in its environment
    ConversationManager,
)
from strands.hooks import AgentInitializedEvent  # type: ignore[import-not-found]  # likewise
from strands.middleware import InvokeModelStage, ModelStopReason  # type: ignore[import-not-found]  # likewise
from strands.tools.tools import PythonAgentTool  # type: ignore[import-not-found]  # likewise

from lowwater.core.formats.refusals import refuses_images
from lowwater.core.recall.recalled import openai_tools
from lowwater.errors import BadInput
from lowwater.integrations.strands.messages import answer_of, message_of, system_of, view_of
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

_COUNTS_APART = ("AnthropicModel", "BedrockModel")
"""Models whose input tokens exclude cache reads and writes, and that take cache points."""


class LowwaterConversationManager(ConversationManager):  # type: ignore[misc]  # its types are Strands' affair
    """Sends the model a view of the conversation that fits, and records what each call cost.

    The Lowwater session is the one named, or else that of the agent's session manager, or a new one. Cache points are placed by
    Lowwater where the model takes them, unless it has a `cache_config` of its own. `tools` let the model look up what the
    view no longer shows.
    """

    def __init__(self, lowwater: Lowwater, *, session: str | None = None) -> None:
        super().__init__()
        self.lowwater = lowwater
        self._name = session
        self._sessions: WeakKeyDictionary[Any, Session] = WeakKeyDictionary()
        self._told: WeakKeyDictionary[Any, tuple[str, int | None]] = WeakKeyDictionary()

    def session(self, agent: Any) -> Session:  # noqa: ANN401 - a strands.Agent
        """Return the Lowwater session of an agent: status, checkpoints, rewind, recall."""
        if agent not in self._sessions:
            told = getattr(getattr(agent, "_session_manager", None), "session_id", None)
            name = self._name or (f"{told}/{agent.agent_id}" if told else None)
            self._sessions[agent] = self.lowwater.session(name, source="strands")
        return self._sessions[agent]

    @property
    def tools(self) -> list[Any]:
        """The recall tools, to be added to the agent's own."""
        return [self._tool(each["function"]) for each in openai_tools()]

    def register_hooks(self, registry: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Strands' signature
        """Wrap each call of the model, as soon as there is an agent."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._begin)

    def apply_management(self, agent: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Strands' signature
        """Do nothing to the agent's messages: what is sent is decided at each call."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **_: Any) -> None:  # noqa: ANN401
        """Make the next request smaller: by the context length in the provider's refusal, or else by compacting the view."""
        session = self.session(agent)
        if e is not None and _learns(session, e):
            return
        if session.compress() is None and e is not None:
            raise e

    def _begin(self, event: Any) -> None:  # noqa: ANN401 - AgentInitializedEvent
        event.agent.add_middleware(InvokeModelStage, self._around_call)

    async def _around_call(
        self,
        context: Any,  # noqa: ANN401 - InvokeModelContext
        next_call: Callable[[Any], AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        """Make one call of the model with the view, and record its answer."""
        session = self._session_for(context)
        takes_marks = type(context.model).__name__ in _COUNTS_APART and not _config(context).get(
            "cache_config"
        )
        request = await session.aprepare(
            [message_of(message) for message in context.messages],
            system=_text_of(context.system_prompt),
            tools=[_tool_of(spec) for spec in context.tool_specs or ()],
            max_tokens=_config(context).get("max_tokens")
            or (_config(context).get("params") or {}).get("max_tokens"),
            starts_over=True,
        )
        view = view_of(internals(session).ledger, context.messages, request, marks=takes_marks)
        system = system_of(context.system_prompt, request) if takes_marks else context.system_prompt
        async for event in next_call(context.replace(messages=view, system_prompt=system)):
            if isinstance(event, ModelStopReason):
                stop, message, usage, _ = event["stop"]
                inclusive = type(context.model).__name__ not in _COUNTS_APART
                await session.arecord(answer_of(message, usage, stop=stop, inclusive=inclusive))
            yield event

    def _session_for(self, context: Any) -> Session:  # noqa: ANN401 - InvokeModelContext
        """Return the session of a call, with the agent's current model and context length."""
        session, model = self.session(context.agent), str(_config(context).get("model_id") or "")
        told = (model, context.model.context_window_limit)
        before = self._told.get(context.agent)
        self._told[context.agent] = told
        if before == told:
            # What was learned from a refusal since takes precedence.
            return session
        if before is not None and before[0] != model:
            session.use(model)
        if told[1] and told[1] != session.status().context:
            session.learn_context_length(told[1])
        return session

    def _tool(self, function: dict[str, Any]) -> Any:  # noqa: ANN401 - PythonAgentTool
        name = function["name"]
        spec = {
            "name": name,
            "description": function["description"],
            "inputSchema": {"json": function["parameters"]},
        }

        def recalled(tool_use: Any, **state: Any) -> dict[str, Any]:  # noqa: ANN401 - ToolUse, invocation state
            said = self.session(state["agent"]).recall_tools().handle(name, json.dumps(tool_use["input"]))
            return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": said}]}

        return PythonAgentTool(name, spec, recalled)


def _learns(session: Session, error: Exception) -> bool:
    """Return whether an error showed a smaller context than assumed, or refused images that could be dropped."""
    if refuses_images(str(error)):
        return internals(session).drop_images()
    believed = session.status().context
    try:
        return session.learn_context_length(error) < believed
    except BadInput:
        return False


def _config(context: Any) -> dict[str, Any]:  # noqa: ANN401 - InvokeModelContext
    config: dict[str, Any] = getattr(context.model, "config", None) or {}
    return config


def _text_of(system: str | list[dict[str, Any]] | None) -> str:
    if system is None or isinstance(system, str):
        return system or ""
    return "\n".join(block["text"] for block in system if "text" in block)


def _tool_of(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a tool in the form of the Messages API, which is what counts in the prompt."""
    schema = spec["inputSchema"]
    return {
        "name": spec["name"],
        "description": spec["description"],
        "input_schema": schema.get("json", schema),
    }
