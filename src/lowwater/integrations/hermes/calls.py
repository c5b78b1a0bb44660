"""Hermes' calls of a model: what is sent is the view, what comes back is recorded."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from lowwater.integrations.hermes.messages import Json

if TYPE_CHECKING:
    from lowwater.integrations.hermes.engine import LowwaterEngine

CHAT = "chat_completions"
ENGINES: "WeakValueDictionary[str, LowwaterEngine]" = WeakValueDictionary()
"""The engines in use, by the ids that Hermes has for their sessions; Hermes says for which one a call is made."""


def around_call(
    *,
    request: Json,
    next_call: Callable[[Json], object],
    session_id: str = "",
    api_mode: str = "",
    **_: object,
) -> object:
    """Carry out one call of a model (Hermes' middleware `llm_execution`).

    What is raised here before the call lets Hermes make it as if there were no Lowwater; what is raised behind it is only logged.
    """
    engine = ENGINES.get(session_id)
    if engine is None or api_mode != CHAT or not isinstance(request.get("messages"), list):
        return next_call(request)
    response = next_call(engine.prepare(request))
    engine.record(response)
    return response


def answer_of(response: object) -> object:
    """Return what the client returned as a chat completion; Hermes puts streams together into objects of its own."""
    if hasattr(response, "model_dump"):
        return response
    choice = response.choices[0]  # type: ignore[attr-defined]
    said = choice.message
    message = {
        "role": "assistant",
        "content": said.content,
        "tool_calls": [_call(call) for call in said.tool_calls or ()],
        "reasoning_content": getattr(said, "reasoning_content", None),
    }
    return {
        "choices": [
            {
                "message": {name: value for name, value in message.items() if value or name == "content"},
                "finish_reason": choice.finish_reason,
            }
        ],
        "model": getattr(response, "model", None),
        "usage": getattr(response, "usage", None),
    }


def _call(call: Any) -> Json:  # noqa: ANN401 - an object of Hermes' or of an SDK
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}
