"""An answer in which one id stands for two calls was paid for: it is stored, and what is sent after it is legal."""

import json
from pathlib import Path
from typing import Any

import pytest

from lowwater import Lowwater
from lowwater.core.entries import Retracted, Rewound
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format, Message
from lowwater.session.internals import internals
from lowwater.session.session import Session
from lowwater.testing.legality import refusal_of

FORMATS: list[Format] = ["anthropic", "openai_chat", "openai_responses"]
MODELS: dict[Format, str] = {
    "anthropic": "claude-opus-5-5",
    "openai_chat": "gpt-5.5",
    "openai_responses": "gpt-5.5",
}
FIRST = {"role": "user", "content": "List both folders."}
TOOL: dict[Format, Any] = {
    "anthropic": {"name": "ls", "input_schema": {"type": "object"}},
    "openai_chat": {"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}},
    "openai_responses": {"type": "function", "name": "ls", "parameters": {"type": "object"}},
}


def answer(format: Format, call: str = "same") -> list[Any]:
    """Return the messages or items of an answer that calls two tools under one id."""
    folders = [json.dumps({"path": path}) for path in ("a", "b")]
    match format:
        case "anthropic":
            uses = [
                {"type": "tool_use", "id": call, "name": "ls", "input": json.loads(each)} for each in folders
            ]
            return [{"role": "assistant", "content": uses}]
        case "openai_chat":
            functions = [{"name": "ls", "arguments": each} for each in folders]
            calls = [{"id": call, "type": "function", "function": each} for each in functions]
            return [{"role": "assistant", "content": None, "tool_calls": calls}]
        case _:
            return [
                {"type": "function_call", "id": "fc_1", "call_id": call, "name": "ls", "arguments": each}
                for each in folders
            ]


def response(format: Format, items: list[Any]) -> dict[str, Any]:
    match format:
        case "anthropic":
            usage = {"input_tokens": 50, "output_tokens": 9}
            return {**items[0], "stop_reason": "tool_use", "usage": usage}
        case "openai_chat":
            return {
                "choices": [{"message": items[0]}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 9},
            }
        case _:
            return {"output": items, "status": "completed", "usage": {"input_tokens": 50, "output_tokens": 9}}


def results(format: Format, call: str = "same", *, texts: tuple[str, ...] = ("in a", "in b")) -> list[Any]:
    match format:
        case "anthropic":
            blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for text in texts]
            return [{"role": "user", "content": blocks}]
        case "openai_chat":
            return [{"role": "tool", "tool_call_id": call, "content": text} for text in texts]
        case _:
            return [{"type": "function_call_output", "call_id": call, "output": text} for text in texts]


def sent(session: Session, format: Format, messages: list[Any] | None = None) -> list[Any]:
    """Prepare a request, check that a provider accepts it, and return its messages or items."""
    request = session.prepare(messages, tools=[TOOL[format]])
    match format:
        case "anthropic":
            body = {"model": MODELS[format], "max_tokens": 100, **request.as_anthropic()}
        case "openai_chat":
            body = {"model": MODELS[format], **request.as_openai()}
        case _:
            body = {"model": MODELS[format], **request.as_responses()}
    assert refusal_of(body, format) is None, refusal_of(body, format)
    listed: list[Any] = body["input" if format == "openai_responses" else "messages"]
    return listed


def pairs(listed: list[Any]) -> dict[str, str]:
    """Return for each call of a request the folder it asks for and the result it got."""
    asked: dict[str, str] = {}
    got: dict[str, str] = {}
    for message in listed:
        content = message.get("content")
        for part in content if isinstance(content, list) else [message]:
            if part.get("type") == "tool_use":
                assert part["id"] not in asked
                asked[part["id"]] = part["input"]["path"]
            elif part.get("type") == "tool_result":
                got[part["tool_use_id"]] = part["content"]
            elif part.get("type") == "function_call":
                assert part["call_id"] not in asked
                asked[part["call_id"]] = json.loads(part["arguments"])["path"]
            elif part.get("type") == "function_call_output":
                got[part["call_id"]] = part["output"]
            elif part.get("role") == "tool":
                got[part["tool_call_id"]] = part["content"]
        for call in message.get("tool_calls", ()):
            assert call["id"] not in asked
            asked[call["id"]] = json.loads(call["function"]["arguments"])["path"]
    assert set(asked) == set(got)
    return {asked[call]: got[call] for call in asked}


def read(listed: list[Any], format: Format) -> list[Message]:
    """Return messages to compare: cache marks are no part of what a model reads."""
    return decode_messages([json.dumps(each).encode() for each in listed], format)


@pytest.mark.parametrize("format", FORMATS)
def test_the_answer_is_stored_and_what_follows_it_is_legal(format: Format, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    lowwater = Lowwater(model=MODELS[format], store=store)
    session = lowwater.session("s")
    messages: list[Any] = [FIRST]
    sent(session, format, messages)
    session.record(response(format, answer(format)))
    assert session.history() == [*messages, *answer(format)], "the answer is there as it came"

    # The client has the ids that the model gave and sends them back.
    messages += [*answer(format), *results(format)]
    first = sent(session, format, messages)
    assert pairs(first) == {"a": "in a", "b": "in b"}
    assert session.history() == messages
    done: dict[str, Any] = {"role": "assistant", "content": "Done."}
    if format == "openai_responses":
        done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    session.record(
        response(
            format,
            [{**done, "content": [{"type": "text", "text": "Done."}]} if format == "anthropic" else done],
        )
    )
    messages += [done, {"role": "user", "content": "Thanks."}]
    second = sent(session, format, messages)
    before = read(first, format)
    assert read(second, format)[: len(before)] == before, "the cached prefix moved"
    assert not any(isinstance(entry, Rewound | Retracted) for entry in internals(session).ledger.entries)

    lowwater.close()
    again = Lowwater(model=MODELS[format], store=store).session("s")
    assert read(sent(again, format, messages), format) == read(second, format)
    assert not any(isinstance(entry, Rewound | Retracted) for entry in internals(again).ledger.entries)


@pytest.mark.parametrize("format", FORMATS)
def test_a_client_that_goes_on_from_the_request_it_was_given_changes_nothing_either(format: Format) -> None:
    session = Lowwater(model=MODELS[format], store="memory:").session("s")
    messages = [FIRST, *answer(format), *results(format)]
    listed = sent(session, format, messages)
    known = len(internals(session).ledger.messages)
    following = sent(
        session,
        format,
        [*listed, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks."}],
    )
    before = read(listed, format)
    assert read(following, format)[: len(before)] == before
    assert len(internals(session).ledger.messages) == known + 2
    assert not any(isinstance(entry, Rewound | Retracted) for entry in internals(session).ledger.entries)


@pytest.mark.parametrize("format", FORMATS)
def test_appended_messages_are_sent_with_ids_of_their_own(format: Format) -> None:
    session = Lowwater(model=MODELS[format], store="memory:").session("s")
    session.append([FIRST, *answer(format), *results(format)])
    assert pairs(sent(session, format)) == {"a": "in a", "b": "in b"}


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("format", FORMATS)
def test_the_session_can_go_on_with_another_provider(format: Format, target: Format) -> None:
    session = Lowwater(model=MODELS[format], store="memory:").session("s")
    session.append([FIRST, *answer(format), *results(format)])
    session.append([*answer(format), *results(format)])
    request = session.prepare(tools=[TOOL[format]])
    body = {
        "anthropic": lambda: {"max_tokens": 100, **request.as_anthropic()},
        "openai_chat": request.as_openai,
        "openai_responses": request.as_responses,
    }[target]()
    refused = refusal_of({"model": MODELS[target], **body}, target)
    # Only Anthropic requires ids that no other message has; the second answer has the first one's item ids as well.
    if not (format == target == "openai_responses"):
        assert refused is None, refused


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    return [_without_marks(each) for each in value] if isinstance(value, list) else value


def _played_from_the_view(call_id: str) -> Session:
    """Play a client that goes on from what it was sent, with a compaction on the way; `{}` in the id is the turn."""
    session = Lowwater(
        model="claude-opus-5-5",
        store="memory:",
        settings={"compression": {"protect_last_n": 4, "protect_first_n": 1}},
    ).session("doubled")
    messages: list[Any] = [{"role": "user", "content": "Please do the work. " * 20}]
    for turn in range(12):
        request = session.prepare(messages)
        if turn == 8:
            session.compress()
            request = session.prepare(messages)
        use = {"type": "tool_use", "id": call_id.format(turn), "name": "read", "input": {"page": turn}}
        said = {"type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": [use]}
        session.record({**said, "usage": {"input_tokens": 100, "output_tokens": 10}})
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"page {turn} " + "data " * 300}
        messages = [
            *_without_marks(request.as_anthropic()["messages"]),
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    return session


def test_a_client_that_goes_on_from_what_was_sent_appends_nothing_twice() -> None:
    doubled, unique = _played_from_the_view("call_0"), _played_from_the_view("call_{}")
    assert len(internals(doubled).ledger.messages) == len(internals(unique).ledger.messages)
