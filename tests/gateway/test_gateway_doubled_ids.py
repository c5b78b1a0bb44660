"""A provider gives two calls one id: the answer is kept, and the next request is one that the provider accepts."""

import json
from typing import Any

import pytest

from lowwater import Lowwater
from lowwater.core.entries import Retracted, Rewound
from lowwater.core.formats.codec import decode_response
from lowwater.core.formats.streams import answer_in_stream
from lowwater.session.internals import internals
from lowwater.testing.provider import Call, CallTools, Say
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through
from tests.gateway.scripted_work import listed_in

PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses"]
CHAT_TOOLS = [
    {"type": "function", "function": {"name": "read", "parameters": ANTHROPIC_TOOLS[0]["input_schema"]}}
]
ITEM_TOOLS = [{"type": "function", "name": "read", "parameters": ANTHROPIC_TOOLS[0]["input_schema"]}]
SCRIPT = [
    CallTools(
        calls=tuple(Call(name="read", arguments={"path": path}, id="same") for path in ("a.py", "b.py"))
    ),
    Say("Both read."),
    Say("You are welcome."),
]


def ask(through: Through, path: str, listed: list[Any], *, stream: bool) -> Any:
    bodies: dict[str, dict[str, Any]] = {
        "/v1/messages": {"model": MODEL, "max_tokens": 500, "tools": ANTHROPIC_TOOLS, "messages": listed},
        "/v1/chat/completions": {"model": "gpt-5.5", "tools": CHAT_TOOLS, "messages": listed},
        "/v1/responses": {"model": "gpt-5.5", "tools": ITEM_TOOLS, "input": listed, "store": False},
    }
    answer = through.post(bodies[path] | {"stream": stream}, path, authorization="Bearer sk-one")
    assert answer.status_code == 200, answer.text
    if not stream:
        return answer.json()
    return json.loads(answer_in_stream(answer.content))


def with_results(path: str, answer: Any) -> list[Any]:
    """Return the answer and its results as a client sends them back, with the ids it was given."""
    if path == "/v1/messages":
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": block["id"],
                "content": f"text of {block['input']['path']}",
            }
            for block in answer["content"]
        ]
        return [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": blocks}]
    if path == "/v1/chat/completions":
        message = answer["choices"][0]["message"]
        return [
            {"role": "assistant", "content": message.get("content"), "tool_calls": message["tool_calls"]},
            *(
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": f"text of {call['function']['arguments']}",
                }
                for call in message["tool_calls"]
            ),
        ]
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    return [
        *answer["output"],
        *(
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": f"text of {call['arguments']}",
            }
            for call in calls
        ),
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
@pytest.mark.parametrize("path", PATHS)
def test_an_answer_with_one_id_for_two_calls_is_recorded_and_can_be_followed(
    start: Starting, path: str, stream: bool
) -> None:
    through = start(SCRIPT)
    first = [{"role": "user", "content": "Read both."}]
    answer = ask(through, path, first, stream=stream)
    assert [call.id for call in decode_response(json.dumps(answer).encode()).message.calls] == [
        "same",
        "same",
    ]
    listed = [*first, *with_results(path, answer)]
    ask(through, path, listed, stream=stream)
    ask(
        through,
        path,
        [*listed, {"role": "assistant", "content": "Both read."}, {"role": "user", "content": "Thanks."}],
        stream=stream,
    )

    sessions = through.store.sessions()
    assert len(sessions) == 1, "the conversation was taken for another one"
    session = Lowwater(model=MODEL, store=through.store).session(sessions[0].name)
    roles = [each.message.role for each in internals(session).ledger.messages]
    assert [role for role in roles if role != "tool"].count("assistant") == 3
    assert not any(isinstance(entry, Rewound | Retracted) for entry in internals(session).ledger.entries)
    second, third = (listed_in(seen) for seen in through.provider.requests[-2:])
    ids = json.dumps(second)
    assert "same-2" in ids
    assert third[: len(second)] == second, "the cached prefix moved"


@pytest.mark.parametrize("path", PATHS)
def test_recall_calls_that_share_an_id_are_both_answered(start: Starting, path: str) -> None:
    calls = tuple(
        Call(name="lowwater_search", arguments={"query": query}, id="same") for query in ("one", "two")
    )
    through = start([CallTools(calls=calls), Say("Nothing found.")], recall=True)
    answer = ask(through, path, [{"role": "user", "content": "What was it?"}], stream=False)
    assert "Nothing found." in json.dumps(answer)
    assert json.dumps(listed_in(through.provider.requests[-1])).count('"same-2"') == 2
