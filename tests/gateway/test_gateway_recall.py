"""Recall behind a client's back: the model gets the tools, the calls are answered here, the client sees one answer."""

from typing import Any

import anthropic
import httpx2
import openai
import pytest

from lowwater.core.messages import Format
from lowwater.gateway.recall import recall_calls, request_with_results
from lowwater.gateway.response_rewrite import rewrite_for
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Answer, Call, CallTools, Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through

SECRET = "the harbour master's number is 77-1234"
CHAT_TOOLS = [
    {
        "type": "function",
        "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}},
    }
]
PRUNED = Settings(compression=CompressionSettings(max_view_tokens=4_000, protect_last_n=4))
USER = {"role": "user", "content": f"Remember: {SECRET}. What is his number?"}


def results(seen: Seen) -> list[str]:
    """Return what tools answered in a request, whichever format it has."""
    found = []
    for message in seen.body["messages"]:
        if message["role"] == "tool":
            found.append(str(message["content"]))
        elif isinstance(message["content"], list):
            found += [
                str(block["content"]) for block in message["content"] if block.get("type") == "tool_result"
            ]
    return found


def recalls(seen: Seen) -> Answer:
    """Recall once, then answer by what came back."""
    got = results(seen)
    if got:
        return Say(text=f"found: {'77-1234' in got[-1]}")
    return CallTools(
        calls=(Call(name="lowwater_search", arguments={"query": "harbour master"}),), text="Let me look. "
    )


def names(seen: Seen) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in seen.body.get("tools", ())]


def by_anthropic(through: Through, *, stream: bool, tools: Any = ANTHROPIC_TOOLS) -> Any:
    given: dict[str, Any] = {"model": MODEL, "max_tokens": 900, "messages": [USER], "tools": tools}
    with anthropic.Anthropic(base_url=through.url, api_key="sk-one", max_retries=0) as client:
        if not stream:
            return client.messages.create(**given)
        with client.messages.stream(**given) as streamed:
            return streamed.get_final_message()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_recalls_and_the_anthropic_client_never_sees_it(start: Starting, stream: bool) -> None:
    through = start(recalls, recall=True)
    answer = by_anthropic(through, stream=stream)
    assert [(block.type, block.text) for block in answer.content] == [
        ("text", "Let me look. "),
        ("text", "found: True"),
    ]
    assert answer.stop_reason == "end_turn"
    assert through.provider.refusals == ()
    assert names(through.provider.requests[0]) == [
        "read",
        "lowwater_search",
        "lowwater_expand",
        "lowwater_pin",
    ]
    assert len(through.provider.requests) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_recalls_and_the_openai_client_never_sees_it(start: Starting, stream: bool) -> None:
    through = start(recalls, recall=True)
    client = openai.OpenAI(base_url=f"{through.url}/v1", api_key="sk-one", max_retries=0)
    given: dict[str, Any] = {"model": "gpt-5.5", "messages": [USER], "tools": CHAT_TOOLS}
    if stream:
        chunks = list(
            client.chat.completions.create(**given, stream=True, stream_options={"include_usage": True})
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert not any(chunk.choices[0].delta.tool_calls for chunk in chunks if chunk.choices)
        reason = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1]
        assert len({chunk.id for chunk in chunks}) == 1
        assert chunks[-1].usage is not None
    else:
        choice = client.chat.completions.create(**given).choices[0]
        text, reason = choice.message.content, choice.finish_reason
        assert not choice.message.tool_calls
    assert (text, reason) == ("Let me look. found: True", "stop")
    assert through.provider.refusals == ()


SEARCHED = Call(name="lowwater_search", arguments={"query": "harbour master"})
NOWHERE = Call(name="lowwater_search", arguments={"query": "zzyzx"})
EXPANDED = Call(name="lowwater_expand", arguments={"handle": "lw:1"})
USES = {
    "never used": ((), "done", (0, 0, 0, 0)),
    "nothing found": ((NOWHERE,), "nothing there", (1, 0, 0, 0)),
    "found, and not named": ((SEARCHED, EXPANDED), "I see.", (1, 1, 2, 0)),
    "found and named": ((SEARCHED,), "It is in src/harbour/master_77.py.", (1, 0, 1, 1)),
    "named, and in view": ((SEARCHED,), "It is in src/in_view.py.", (1, 0, 1, 0)),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("calls", "said", "expected"), USES.values(), ids=USES)
def test_the_use_of_recall_is_counted(
    start: Starting, calls: tuple[Call, ...], said: str, expected: tuple[int, ...], stream: bool
) -> None:
    def script(seen: Seen) -> Answer:
        return Say(text=said) if len(results(seen)) > 1 or not calls else CallTools(calls=calls)

    # One name among so many that a digest has no room for it.
    files = [f"src/quay/crane_{number}.py" for number in range(600)]
    files[300] = "\nThe harbour master is in src/harbour/master_77.py and src/in_view.py.\n"
    hidden = " ".join(files)
    through = start(script, recall=True, settings=PRUNED)
    listed: Any = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": hidden}]},
    ]
    for _ in range(8):
        listed += [
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "See src/in_view.py"},
        ]
    body = {"model": MODEL, "max_tokens": 900, "messages": listed, "tools": ANTHROPIC_TOOLS, "stream": stream}
    assert through.post(body).headers["x-lowwater-request"] == "changed"
    assert b"master_77" not in through.provider.requests[0].raw
    (account,) = through.store.accounts()
    (record,) = account.records
    use = record.recall
    assert use is not None
    assert (use.searches, use.expands, use.found, use.named) == expected
    metrics = httpx2.get(f"{through.url}/metrics").text
    assert f'lowwater_recall_offered_total{{model="{MODEL}"}} 1.0' in metrics
    assert f'lowwater_recalls_total{{mode="search",model="{MODEL}"}} {float(expected[0])}' in metrics
    assert f'lowwater_recalls_named_total{{model="{MODEL}"}} {float(expected[3])}' in metrics


def test_without_recall_tools_nothing_is_offered(start: Starting) -> None:
    through = start([Say(text="done")])
    by_anthropic(through, stream=False)
    (account,) = through.store.accounts()
    assert [record.recall for record in account.records] == [None]


def test_every_call_is_in_the_bill(start: Starting) -> None:
    through = start(recalls, recall=True)
    by_anthropic(through, stream=True)
    (account,) = through.store.accounts()
    (record,) = account.records
    assert record.cost is not None
    alone = start(lambda _: Say(text="Let me look. found: True"), recall=True)
    by_anthropic(alone, stream=True)
    (other,) = alone.store.accounts()[0].records
    assert other.cost is not None
    assert record.cost > 1.5 * other.cost


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_next_turn_goes_on_from_what_the_client_saw(start: Starting, stream: bool) -> None:
    through = start(recalls, recall=True)
    answer = by_anthropic(through, stream=stream)
    client = anthropic.Anthropic(base_url=through.url, api_key="sk-one", max_retries=0)
    said = [{"type": "text", "text": block.text} for block in answer.content]
    messages: Any = [USER, {"role": "assistant", "content": said}, {"role": "user", "content": "thanks"}]
    client.messages.create(model=MODEL, max_tokens=9, messages=messages, tools=ANTHROPIC_TOOLS)  # type: ignore[arg-type]
    (session,) = through.store.sessions()
    assert (session.turns, session.messages) == (2, 4)


def test_calls_of_the_clients_own_tools_go_to_the_client(start: Starting) -> None:
    both = CallTools(
        calls=(
            Call(name="lowwater_search", arguments={"query": "x"}),
            Call(name="read", arguments={"path": "a"}),
        )
    )
    through = start([both], recall=True)
    answer = by_anthropic(through, stream=True)
    assert [block.name for block in answer.content if block.type == "tool_use"] == ["read"]
    assert answer.stop_reason == "tool_use"
    assert len(through.provider.requests) == 1


def test_a_model_that_recalls_for_ever_is_stopped(start: Starting) -> None:
    again = CallTools(calls=(Call(name="lowwater_search", arguments={"query": "harbour"}),))
    through = start(lambda _: again, recall=True)
    answer = by_anthropic(through, stream=False)
    assert answer.stop_reason == "end_turn"
    assert len(through.provider.requests) == 6


def test_requests_without_tools_stay_without(start: Starting) -> None:
    through = start(recall=True)
    through.post({"model": MODEL, "max_tokens": 9, "messages": [USER]})
    assert "tools" not in through.provider.requests[0].body


def test_without_the_option_no_tool_is_added(start: Starting) -> None:
    through = start()
    by_anthropic(through, stream=False)
    assert names(through.provider.requests[0]) == ["read"]


@pytest.mark.parametrize(
    ("format", "answer"),
    [
        (
            "anthropic",
            '"content": [{"type": "tool_use", "id": "1", "name": "lowwater_search", "input": {"n": 1e999}}]',
        ),
        (
            "openai_chat",
            '"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "1", "type": "function",'
            ' "function": {"name": "lowwater_search", "arguments": "{}"}}]}}]',
        ),
        (
            "openai_responses",
            '"output": [{"type": "function_call", "call_id": "1", "name": "lowwater_search"}]',
        ),
    ],
)
def test_numbers_that_no_float_holds_do_not_keep_recall_from_an_answer(format: Format, answer: str) -> None:
    whole = f'{{{answer}, "usage": {{"more": 1e999}}, "large": {10**30}}}'.encode()
    calls = recall_calls(whole, format)
    assert [(call.id, call.name) for call in calls] == [("1", "lowwater_search")]
    body = b'{"input": []}' if format == "openai_responses" else b'{"messages": []}'
    assert b"found" in request_with_results(body, whole, calls, ["found"], format)
    rewrite = rewrite_for(format)
    rewrite.add_answer(whole)
    assert rewrite.only_recalled()
    assert b"lowwater_search" not in rewrite.answer()
