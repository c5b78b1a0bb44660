"""The capability: the history keeps every message, the model is sent the view."""

from dataclasses import replace
from typing import Any, cast

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import ModelRequest, ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset

from lowwater.core.recall.recalled import openai_tools
from lowwater.integrations.pydantic_ai.reading import answered, units_of
from lowwater.integrations.pydantic_ai.writing import messages_of
from lowwater.integrations.sessions import Sessions
from lowwater.integrations.turn import Preamble, abegin, learns
from lowwater.integrations.units import format_of
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

Context = RunContext[Any]


class LowwaterCapability(AbstractCapability[Any]):
    """Sends the model a view of the conversation that fits, and records what each call cost.

    The Lowwater session is named after the conversation: `conversation_id`, which `message_history` carries on. With
    `recall` the model gets two tools to look up what the view no longer shows. Cache marks are placed by Lowwater, unless the
    agent's settings say anything about caching.
    """

    def __init__(self, lowwater: Lowwater, *, recall: bool = False) -> None:
        self.id = "lowwater"
        self._sessions = Sessions(lowwater, source="pydantic-ai")
        self.recall = recall

    def session(self, conversation: str) -> Session:
        """Return the Lowwater session of a conversation: status, checkpoints, rewind, recall."""
        return self._sessions.named(conversation)

    async def prepare_model_request(
        self, ctx: Context, request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send the view; the history of the run stays as it is."""
        session = self._sessions.asking(_name(ctx), request_context.model.model_name)
        history = request_context.messages
        sent = await abegin(session, units_of(history, format_of(session)), _preamble(request_context))
        settings: dict[str, Any] = {**(request_context.model_settings or {})}
        marks = not any("cache" in name for name in settings)
        if marks and sent.system_mark:
            settings |= {"cache": False, "anthropic_cache_instructions": True}
        if sent.request.cache_key:
            settings.setdefault("openai_prompt_cache_key", sent.request.cache_key)
        if sent.thinking is not None:
            settings["anthropic_thinking"] = sent.thinking
        return replace(
            request_context,
            messages=messages_of(sent, history, marks=marks),
            model_settings=cast(ModelSettings, settings),
        )

    async def after_model_request(
        self,
        ctx: Context,
        *,
        request_context: ModelRequestContext,  # noqa: ARG002 - the framework names it
        response: ModelResponse,
    ) -> ModelResponse:
        """Record the answer."""
        session = self._session_of(ctx)
        await session.arecord(answered(response, format_of(session)).response(format_of(session)))
        return response

    async def on_model_request_error(
        self, ctx: Context, *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Try once more if the error taught that the window is smaller than believed."""
        if request_context.attempt == 1 and learns(self._session_of(ctx), error):
            raise RetryModelRequest from error
        raise error

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """Return the recall tools, if they are offered."""
        return FunctionToolset(tools=self._recall_tools()) if self.recall else None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """It holds what no specification can say."""
        return None

    def _session_of(self, ctx: Context) -> Session:
        return self.session(_name(ctx))

    def _recall_tools(self) -> list[Tool[Any]]:
        def tool(name: str, said: str, schema: dict[str, Any]) -> Tool[Any]:
            def handle(ctx: Context, **arguments: object) -> str:
                return self._session_of(ctx).recall_tools().handle(name, arguments)

            return Tool.from_schema(handle, name, said, schema, takes_ctx=True)

        return [
            tool(each["function"]["name"], each["function"]["description"], each["function"]["parameters"])
            for each in openai_tools()
        ]


def _name(ctx: Context) -> str:
    return ctx.conversation_id or ctx.run_id or "pydantic-ai"


def _preamble(request: ModelRequestContext) -> Preamble:
    asked = request.model_request_parameters
    parts = asked.instruction_parts or ()
    spoken = [part.content for part in parts]
    if not spoken:
        told = (
            message.instructions
            for message in reversed(request.messages)
            if isinstance(message, ModelRequest)
        )
        spoken = [next(told, None) or ""]
    settings: Any = request.model_settings or {}
    return Preamble(
        system="\n\n".join(spoken),
        tools=[
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.parameters_json_schema,
                },
            }
            for tool in (*asked.function_tools, *asked.output_tools)
        ],
        max_tokens=settings.get("max_tokens"),
        thinking=settings.get("anthropic_thinking"),
    )
