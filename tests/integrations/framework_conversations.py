"""One conversation in the objects of each framework, with everything that may stand in it."""

import base64
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

PICTURE = base64.b64encode(b"\x89PNG not really").decode()

LANGCHAIN: list[Any] = [
    SystemMessage("Be brief."),
    HumanMessage("Hello"),
    HumanMessage(
        [
            {"type": "text", "text": "Look:"},
            {"type": "image", "base64": PICTURE, "mime_type": "image/png"},
            {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}},
            {"type": "file", "base64": PICTURE, "mime_type": "application/pdf"},
            {"type": "a_block_of_tomorrow", "n": 1},
        ]
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"at": 1}},
        ],
        tool_calls=[
            {"id": "c1", "name": "read", "args": {"at": 1}},
            {"id": "c2", "name": "read", "args": {}},
        ],
    ),
    ToolMessage("one", tool_call_id="c1"),
    ToolMessage([{"type": "text", "text": "two"}, "three"], tool_call_id="c2", status="error"),
    AIMessage("", additional_kwargs={"reasoning_content": "Let me see."}),
    AIMessage([{"type": "reasoning", "reasoning": "So.", "extras": {"signature": "s"}}, "Done."]),
]
AGENTS: list[Any] = [
    {"role": "user", "content": "Hello"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look:"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
            {"type": "input_file", "file_data": PICTURE, "filename": "a.pdf"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": '{"at": 1}'},
    {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "one"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"role": "assistant", "content": "Done."},
]
PYDANTIC: list[Any] = [
    ModelRequest(
        parts=[
            SystemPromptPart("Be brief."),
            UserPromptPart(
                [
                    "Look:",
                    CachePoint(),
                    ImageUrl("http://127.0.0.1/a.png"),
                    BinaryContent(base64.b64decode(PICTURE), media_type="image/png"),
                    BinaryContent(base64.b64decode(PICTURE), media_type="application/pdf"),
                ]
            ),
        ],
        instructions="Be brief.",
    ),
    ModelResponse(
        parts=[
            ThinkingPart("Hm.", id="rs_1", signature="s", provider_name="openai"),
            TextPart("I look.", id="msg_1", provider_name="openai"),
            ToolCallPart("read", {"at": 1}, tool_call_id="c1"),
            ToolCallPart("read", "{}", tool_call_id="c2"),
        ]
    ),
    ModelRequest(
        parts=[
            ToolReturnPart("read", {"lines": ["one"]}, tool_call_id="c1"),
            ToolAvailabilityDeltaPart(tools_added=["write"]),
            ToolReturnPart("read", "two", tool_call_id="c2", outcome="failed"),
            RetryFeedbackPart("Try again.", retry=RetryInfo(cause="no_output", attempt=1)),
        ]
    ),
    ModelResponse(parts=[TextPart("Done.")]),
]
