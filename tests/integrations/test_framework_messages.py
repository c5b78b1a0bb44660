"""Messages of the frameworks to the ledger's and back: nothing moves, nothing is lost."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic_ai.messages import (
    CachePoint,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format, Message, Text, Thinking, ToolCall, ToolResult
from lowwater.errors import BadInput
from lowwater.integrations.framework import (
    MappedMessage,
    OutgoingRequest,
    RequestPreamble,
    ViewMessage,
    encode_message,
    prepare_call,
)
from lowwater.integrations.langchain import middleware as langchain_reading
from lowwater.integrations.langchain import middleware as langchain_writing
from lowwater.integrations.openai_agents import session as agents_reading
from lowwater.integrations.openai_agents import session as agents_writing
from lowwater.integrations.pydantic_ai import capability as pydantic_reading
from lowwater.integrations.pydantic_ai import capability as pydantic_writing
from lowwater.session.library import Lowwater
from lowwater.session.request import PreparedRequest
from tests.integrations.framework_conversations import AGENTS, LANGCHAIN, PYDANTIC

FORMATS = pytest.mark.parametrize("format", ["openai_chat", "anthropic"])

CONVERSATIONS = pytest.mark.parametrize(
    ("reading", "conversation"),
    [
        pytest.param(langchain_reading, LANGCHAIN, id="langchain"),
        pytest.param(agents_reading, AGENTS, id="openai-agents"),
        pytest.param(pydantic_reading, PYDANTIC, id="pydantic-ai"),
    ],
)


@FORMATS
@CONVERSATIONS
def test_a_message_is_read_again_as_it_was_written(
    reading: Any, conversation: Sequence[Any], format: Format
) -> None:
    units: list[MappedMessage[Any]] = reading.map_messages(conversation, format)
    for unit in units:
        (again,) = decode_messages([encode_message(unit.message, format)], format)
        assert again == unit.message
        assert len(unit.places) == len(unit.message.parts)
    assert [encode_message(unit.message, format) for unit in units] == [
        encode_message(unit.message, format) for unit in reading.map_messages(conversation, format)
    ]
    called = [call.id for unit in units for call in unit.message.calls]
    answered = [result.call_id for unit in units for result in unit.message.results]
    assert called[:2] == answered == ["c1", "c2"]


def sending(view: list[ViewMessage[Any]]) -> OutgoingRequest[Any]:
    return OutgoingRequest(view=view, system_mark={}, request=PreparedRequest(messages=()))


def as_it_is(units: Sequence[MappedMessage[Any]]) -> list[ViewMessage[Any]]:
    return [ViewMessage(message=unit.message, source=unit.source) for unit in units]


def dropping(unit: MappedMessage[Any]) -> ViewMessage[Any]:
    """A unit without its thinking."""
    at = [
        place
        for part, place in zip(unit.message.parts, unit.places, strict=True)
        if isinstance(part, Thinking)
    ]
    changes = {position: None for place in at for position in place}
    assert changes
    return ViewMessage(message=unit.message, source=unit.source, changes=changes)


def with_result(unit: MappedMessage[Any], text: str) -> ViewMessage[Any]:
    """A tool's answer with a placeholder in its stead."""
    return ViewMessage(message=unit.message, source=unit.source, changes={0: text})


SUMMARY = ViewMessage[Any](message=Message(role="user", parts=(Text(text="So far: nothing."),)))
STUB = ViewMessage[Any](
    message=Message(role="tool", parts=(ToolResult(call_id="c2", parts=(Text(text="none"),), is_error=True),))
)


class TestLangChain:
    def test_what_stands_as_it_came_is_the_same_object(self) -> None:
        units = langchain_reading.map_messages(LANGCHAIN, "anthropic")
        view: list[Any] = langchain_writing.messages_of(sending(as_it_is(units)), marks=False)
        assert [id(message) for message in view] == [id(message) for message in LANGCHAIN]

    def test_thinking_goes_and_calls_stay(self) -> None:
        units = langchain_reading.map_messages(LANGCHAIN, "anthropic")
        (left,) = langchain_writing.messages_of(sending([dropping(units[3])]), marks=False)
        assert isinstance(left, AIMessage)
        assert [block["type"] for block in left.content if isinstance(block, dict)] == ["text", "tool_use"]
        assert left.tool_calls == LANGCHAIN[3].tool_calls
        assert len(LANGCHAIN[3].content) == 4, "the state's own message stays as it was"

    def test_reasoning_beside_the_content_goes(self) -> None:
        units = langchain_reading.map_messages(LANGCHAIN, "openai_chat")
        (left,) = langchain_writing.messages_of(sending([dropping(units[6])]), marks=False)
        assert "reasoning_content" not in left.additional_kwargs

    def test_placeholders_summaries_and_stubs(self) -> None:
        units = langchain_reading.map_messages(LANGCHAIN, "openai_chat")
        view = [SUMMARY, with_result(units[4], "[one]"), with_result(units[5], "[two]"), STUB]
        said: list[Any] = langchain_writing.messages_of(sending(view), marks=False)
        assert [message.type for message in said] == ["human", "tool", "tool", "tool"]
        assert [message.content for message in said[:2]] == ["So far: nothing.", "[one]"]
        assert said[2].content == [{"type": "text", "text": "[two]"}, "three"]
        assert (said[2].status, said[3].status, said[3].tool_call_id) == ("error", "error", "c2")

    def test_a_mark_stands_on_the_last_block_that_may_carry_one(self) -> None:
        units = langchain_reading.map_messages(LANGCHAIN, "anthropic")
        mark = {"cache_control": {"type": "ephemeral"}}
        view = [
            ViewMessage(message=unit.message, source=unit.source, mark=mark) for unit in (units[1], units[3])
        ]
        hello, looks = langchain_writing.messages_of(sending(view), marks=True)
        assert hello.content == [{"type": "text", "text": "Hello", **mark}]
        assert looks.content[2] == {"type": "text", "text": "I look.", **mark}
        assert LANGCHAIN[1].content == "Hello"

    def test_what_is_no_message_is_refused_in_a_sentence(self) -> None:
        from langchain_core.messages import RemoveMessage

        removed: list[Any] = [RemoveMessage(id="1")]
        with pytest.raises(BadInput, match="RemoveMessage is no message that a model is sent"):
            langchain_reading.map_messages(removed, "anthropic")


class TestOpenAIAgents:
    def test_what_stands_as_it_came_is_the_same_object(self) -> None:
        units = agents_reading.map_messages(AGENTS, "openai_chat")
        items = agents_writing.items_of(sending(as_it_is(units)))
        assert [id(item) for item in items] == [id(item) for item in AGENTS]

    def test_what_is_left_of_an_answer_without_its_reasoning_has_no_ids(self) -> None:
        units = agents_reading.map_messages(AGENTS, "openai_chat")
        left = agents_writing.items_of(sending([dropping(units[2])]))
        assert [item["type"] for item in left] == ["message", "function_call", "function_call"]
        assert all("id" not in item for item in left)
        assert [item.get("call_id") for item in left] == [None, "c1", "c2"]

    def test_placeholders_summaries_and_stubs(self) -> None:
        units = agents_reading.map_messages(AGENTS, "openai_chat")
        picture = ViewMessage(message=units[1].message, source=units[1].source, changes={1: "[a picture]"})
        view = [SUMMARY, picture, with_result(units[3], "[one]"), with_result(units[4], "[two]"), STUB]
        said = agents_writing.items_of(sending(view))
        assert said[0] == {"role": "user", "content": "So far: nothing."}
        assert [block["type"] for block in said[1]["content"]] == ["input_text", "input_text", "input_file"]
        assert [item["output"] for item in said[2:]] == ["[one]", "[two]", "none"]


class TestPydanticAI:
    def test_what_stands_as_it_came_is_the_same_object(self) -> None:
        units = pydantic_reading.map_messages(PYDANTIC, "anthropic")
        view = pydantic_writing.messages_of(sending(as_it_is(units)), PYDANTIC, marks=False)
        assert [id(message) for message in view] == [id(message) for message in PYDANTIC]

    def test_what_is_left_of_a_response_without_its_thinking_has_no_ids(self) -> None:
        units = pydantic_reading.map_messages(PYDANTIC, "anthropic")
        (left,) = pydantic_writing.messages_of(sending([dropping(units[2])]), PYDANTIC[:2], marks=False)
        assert [part.part_kind for part in left.parts] == ["text", "tool-call", "tool-call"]
        assert [getattr(part, "id", None) for part in left.parts] == [None, None, None]

    def test_placeholders_summaries_and_stubs_and_what_no_model_sees(self) -> None:
        units = pydantic_reading.map_messages(PYDANTIC, "openai_chat")
        whole = ViewMessage(message=units[4].message, source=units[4].source)
        shown = [SUMMARY, with_result(units[3], "[one]"), whole, STUB]
        (request,) = pydantic_writing.messages_of(sending(shown), PYDANTIC, marks=False)
        kinds = [part.part_kind for part in request.parts]
        assert kinds == [
            "user-prompt",
            "tool-return",
            "tool-return",
            "tool-return",
            "tool-availability-delta",
        ]
        first, second, third = (part for part in request.parts if isinstance(part, ToolReturnPart))
        assert (first.content, second is PYDANTIC[2].parts[2]) == ("[one]", True)
        assert (third.tool_name, third.tool_call_id, third.outcome) == ("read", "c2", "failed")

    def test_changes_of_tools_come_along_when_their_request_is_summarised(self) -> None:
        units = pydantic_reading.map_messages(PYDANTIC, "openai_chat")
        view = [SUMMARY, ViewMessage(message=units[-1].message, source=units[-1].source)]
        request, response = pydantic_writing.messages_of(sending(view), PYDANTIC, marks=False)
        kinds = [part.part_kind for part in request.parts]
        assert kinds == ["tool-availability-delta", "user-prompt"]
        assert response is PYDANTIC[-1]

    def test_a_mark_is_a_cache_point_behind_what_it_marks(self) -> None:
        units = pydantic_reading.map_messages(PYDANTIC, "anthropic")
        mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
        view = [
            ViewMessage(message=unit.message, source=unit.source, mark=mark) for unit in (units[2], units[3])
        ]
        _, request = pydantic_writing.messages_of(sending(view), PYDANTIC, marks=True)
        point = UserPromptPart([CachePoint(ttl="1h")]).content
        assert [getattr(part, "content", None) == point for part in request.parts] == [
            True,
            False,
            True,
            False,
        ]


ARGUMENTS = {"path": "a.py", "text": "word " * 6_000}
LONG = json.dumps(ARGUMENTS)
ASKED = {"role": "user", "content": "Write the file"}


def written_by_langchain(sent: OutgoingRequest[Any], history: list[Any]) -> list[Any]:
    del history
    return langchain_writing.messages_of(sent, marks=False)


def written_by_agents(sent: OutgoingRequest[Any], history: list[Any]) -> list[Any]:
    del history
    return agents_writing.items_of(sent)


def written_by_pydantic(sent: OutgoingRequest[Any], history: list[Any]) -> list[Any]:
    return pydantic_writing.messages_of(sent, history, marks=False)


def langchain_call(content: Any, **beside: Any) -> list[Any]:
    calls: list[Any] = [{"id": "c", "name": "write", "args": ARGUMENTS}]
    said = AIMessage(content, tool_calls=calls, additional_kwargs=beside)
    return [HumanMessage("Write the file"), said, ToolMessage("ok", tool_call_id="c")]


def agents_call(call: dict[str, Any], output: str) -> list[Any]:
    return [ASKED, {"id": "i", "call_id": "c", **call}, {"type": output, "call_id": "c", "output": "ok"}]


def pydantic_call(arguments: Any) -> list[Any]:
    return [
        ModelRequest(parts=[UserPromptPart("Write the file")]),
        ModelResponse(parts=[TextPart("I write."), ToolCallPart("write", arguments, tool_call_id="c")]),
        ModelRequest(parts=[ToolReturnPart("write", "ok", tool_call_id="c")]),
    ]


def readable(message: Message) -> list[Any]:
    """The parts of a message; the arguments of a call as objects, for the frameworks write JSON in ways of their own."""
    return [
        (part.id, part.name, json.loads(part.arguments)) if isinstance(part, ToolCall) else part
        for part in message.parts
    ]


@pytest.mark.parametrize(
    ("reading", "write", "history", "model"),
    [
        pytest.param(
            langchain_reading,
            written_by_langchain,
            langchain_call(
                [
                    {"type": "text", "text": "I write."},
                    {
                        "type": "tool_use",
                        "id": "c",
                        "name": "write",
                        "input": ARGUMENTS,
                        "partial_json": LONG,
                    },
                ]
            ),
            "claude-sonnet-4-5",
            id="langchain-claude",
        ),
        pytest.param(
            langchain_reading,
            written_by_langchain,
            langchain_call(
                "",
                reasoning_content="Hm.",
                tool_calls=[
                    {"id": "c", "type": "function", "function": {"name": "write", "arguments": LONG}}
                ],
            ),
            "gpt-5.4",
            id="langchain-chat",
        ),
        pytest.param(
            langchain_reading,
            written_by_langchain,
            langchain_call(
                [{"type": "function_call", "id": "fc", "call_id": "c", "name": "write", "arguments": LONG}]
            ),
            "gpt-5.4",
            id="langchain-responses",
        ),
        pytest.param(
            agents_reading,
            written_by_agents,
            agents_call(
                {"type": "function_call", "name": "write", "arguments": LONG}, "function_call_output"
            ),
            "gpt-5.4",
            id="openai-agents",
        ),
        pytest.param(
            agents_reading,
            written_by_agents,
            agents_call(
                {"type": "custom_tool_call", "name": "write", "input": ARGUMENTS["text"]},
                "custom_tool_call_output",
            ),
            "gpt-5.4",
            id="openai-agents-custom",
        ),
        pytest.param(
            pydantic_reading,
            written_by_pydantic,
            pydantic_call(ARGUMENTS),
            "claude-sonnet-4-5",
            id="pydantic-ai",
        ),
        pytest.param(
            pydantic_reading, written_by_pydantic, pydantic_call(LONG), "gpt-5.4", id="pydantic-ai-text"
        ),
    ],
)
def test_a_call_that_was_cut_at_the_wall_is_sent_as_it_was_counted(
    reading: Any, write: Callable[..., list[Any]], history: list[Any], model: str
) -> None:
    format: Format = "anthropic" if model.startswith("claude") else "openai_chat"
    session = Lowwater(model=model, policy="never", store="memory:").session()
    session.learn_context_length(6_000)
    before = repr(history)
    sent = prepare_call(session, reading.map_messages(history, format), RequestPreamble())
    (cut,) = [shown for shown in sent.view if shown.calls]
    assert len(cut.calls["c"]) < 20_000
    written = write(sent, history)
    assert ARGUMENTS["text"] not in repr(written)
    again: list[MappedMessage[Any]] = reading.map_messages(written, format)
    assert [readable(unit.message) for unit in again] == [readable(shown.message) for shown in sent.view]
    assert all(unit.source.content != [""] for unit in again if isinstance(unit.source, AIMessage))
    assert not any("content" in item for item in written if isinstance(item, dict) and "call_id" in item)
    assert repr(history) == before, "what the framework keeps stays whole"


def test_words_in_place_of_reasoning_beside_the_content_are_the_content() -> None:
    (unit,) = langchain_reading.map_messages([LANGCHAIN[6]], "openai_chat")
    shown = ViewMessage(
        message=unit.message, source=unit.source, changes={langchain_reading.OUTSIDE: "[left out]"}
    )
    (left,) = langchain_writing.messages_of(sending([shown]), marks=False)
    assert (left.text, left.additional_kwargs) == ("[left out]", {})


def test_what_the_providers_own_tools_did_is_sent_in_words_once_it_is_cut() -> None:
    search: Any = {"type": "web_search_call", "id": "ws_1", "action": {"query": "q" * 500}}
    patched: Any = {"type": "custom_tool_call_output", "call_id": "c", "output": "long " * 500}
    searched, output = agents_reading.map_messages([search, patched], "openai_chat")
    view = [
        ViewMessage(message=searched.message, source=searched.source, changes={0: "[a search]"}),
        with_result(output, "[one]"),
    ]
    assert agents_writing.items_of(sending(view)) == [
        {"role": "assistant", "content": "[a search]"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "[one]"},
    ]
