"""Chat messages as items of the Responses API and back, so that all peers are judged in one format.

It runs inside the environment of the Agents SDK, which brings the types along.
"""

from typing import Any

from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
)

from bench.peers.compact_endpoint import Items
from bench.peers.serving import Messages


def outputs_of(message: dict[str, Any], response: str) -> list[ResponseOutputItem]:
    """Return an answer as the Responses API gives it."""
    output: list[ResponseOutputItem] = []
    if message.get("content"):
        text = ResponseOutputText(type="output_text", text=message["content"], annotations=[])
        output.append(
            ResponseOutputMessage(
                id=f"msg_{response}", type="message", role="assistant", status="completed", content=[text]
            )
        )
    for call in message.get("tool_calls") or ():
        function = call["function"]
        output.append(
            ResponseFunctionToolCall(
                type="function_call",
                call_id=call["id"],
                name=function["name"],
                arguments=function["arguments"],
            )
        )
    return output


def items_of(messages: Messages) -> Items:
    """Return messages as items of the Responses API; the system prompt is not one of them."""
    items: Items = []
    for message in messages:
        match message["role"]:
            case "tool":
                output = {"call_id": message["tool_call_id"], "output": message["content"]}
                items.append({"type": "function_call_output", **output})
            case "assistant":
                items += [
                    item.model_dump(exclude_unset=True) for item in outputs_of(message, str(len(items)))
                ]
            case "user":
                items.append({"role": "user", "content": message["content"]})
    return items


def messages_of(items: Items) -> Messages:
    """Return items as chat messages; an opaque item is a user's message."""
    messages: Messages = []
    for item in items:
        match item.get("type"):
            case "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                call = {"id": item["call_id"], "type": "function", "function": function}
                if messages and messages[-1]["role"] == "assistant":
                    messages[-1].setdefault("tool_calls", []).append(call)
                else:
                    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            case "function_call_output":
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            case "compaction":
                messages.append({"role": "user", "content": item["encrypted_content"]})
            case _:
                content = item["content"]
                text = content if isinstance(content, str) else "".join(each["text"] for each in content)
                messages.append({"role": item["role"], "content": text})
    return messages
