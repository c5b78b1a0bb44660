"""Whatever `append`, `prepare` and `record` accept can be shown and sent later, in every format and from every process."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lowwater import Lowwater
from lowwater.errors import BadInput, IllegalView, LowwaterError
from lowwater.session.internals import internals
from lowwater.session.session import Session

_PIXEL = "iVBORw0KGgo="
_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXEL}}
_MODELS = ("claude-opus-5-5", "gpt-5.5", "deepseek-chat")

_SAID: Sequence[Any] = (
    {"role": "user", "content": "hi there"},
    {"role": "user", "content": [{"type": "text", "text": "hello"}]},
    {"role": "user", "content": [_IMAGE]},
    {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}],
    },
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "an item"}]},
    {
        "role": "user",
        "content": [
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
        ],
    },
    {"role": "user", "content": [{"type": "weird", "x": 1}, {"type": "text", "text": "t"}]},
)
_INSTRUCTIONS: Sequence[Any] = (
    {"role": "system", "content": "Be good."},
    {"role": "developer", "content": "Be better."},
    {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
)


def _answers(a: str, b: str) -> Sequence[Any]:
    """Return answers in all formats, some of them odd, with calls of these ids."""
    use = {"type": "tool_use", "name": "f", "input": {"q": 1}}
    function = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    return (
        {"role": "assistant", "content": "ok"},
        {"role": "assistant", "content": [{"type": "text", "text": "x"}, {**use, "id": a}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {**use, "id": a},
                {**use, "id": b},
            ],
        },
        {"role": "assistant", "content": [{**use, "id": a}, {**use, "id": a}]},
        {"role": "assistant", "content": None, "tool_calls": [{**function, "id": a}]},
        {
            "role": "assistant",
            "content": "c",
            "tool_calls": [{"id": a, "type": "custom", "custom": {"name": "f", "input": "text"}}],
        },
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": 5}]},
        {"role": "assistant", "content": [{"type": "compaction", "content": 5}]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": a, "name": "w", "input": {}}]},
        {"type": "function_call", "call_id": a, "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": a, "name": "f", "input": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ot"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        b'{"role":"assistant","content":[{"type":"tool_use","id":"%b","name":"f","input":{"a":1e400}}]}'
        % a.encode(),
        b'{"role":"assistant","content":[{"type":"odd","v":-1e999,"n":%b}]}' % (b"9" * 5000),
    )


def _calls(message: Any) -> list[str]:
    if isinstance(message, bytes):
        return []
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [
        *[block["id"] for block in blocks if block["type"] == "tool_use"],
        *[call["id"] for call in message.get("tool_calls", ())],
        *([message["call_id"]] if "call_id" in message else []),
    ]


def _results(ids: Sequence[str], chance: random.Random) -> list[Any]:
    return [
        chance.choice(
            [
                {"role": "tool", "tool_call_id": id, "content": "res"},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "res"}]},
                {"type": "function_call_output", "call_id": id, "output": "res"},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": id, "content": [_IMAGE, {"type": "zzz"}]},
                        {"type": "text", "text": "and"},
                    ],
                },
            ]
        )
        for id in ids
    ]


def _response(message: Any) -> Any:
    """Return a message of the assistant as the provider of its format answers it."""
    if isinstance(message, bytes):
        body = message.removesuffix(b"}").removeprefix(b"{")
        return b"{%b,%b}" % (body, b'"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":3}')
    if "type" in message:
        return {"output": [message], "status": "completed", "usage": {"input_tokens": 9, "output_tokens": 2}}
    if isinstance(message["content"], list):
        return {**message, "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 3}}
    return {"choices": [{"message": message}], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}


def _steps(chance: random.Random) -> Iterator[list[Any]]:
    """Yield what comes next in a conversation whose formats are mixed: messages of the user, instructions, answers, results."""
    waiting: list[str] = []
    for step in range(chance.randrange(1, 8)):
        new = chance.choice(["user", "system", "answer", "results"])
        if new == "user":
            yield [chance.choice(_SAID)]
        elif new == "system":
            yield [chance.choice(_INSTRUCTIONS)]
        elif new == "answer":
            answer = chance.choice(_answers(f"a{step}", f"b{step}"))
            waiting = _calls(answer)
            yield [answer]
        elif waiting:
            yield _results(waiting, chance)


def _show_everything(session: Session) -> None:
    """Read the session in every way there is; only a conversation without a word of the user may not be sent."""
    json.dumps([session.view(), session.history()], allow_nan=False)
    try:
        request = session.prepare()
    except IllegalView as refused:
        assert "append a user message" in str(refused)
        return
    anthropic, chat, items = request.as_anthropic(), request.as_openai(), request.as_responses()
    json.dumps([anthropic, chat, items], allow_nan=False)
    for before, message in zip([None, *anthropic["messages"]], anthropic["messages"], strict=False):
        assert message["role"] != "system" or (before is not None and before["role"] == "user")


def _play(address: str, seed: int) -> None:
    chance = random.Random(seed)
    name = f"mixed-{seed}"
    lowwater = Lowwater(model=chance.choice(_MODELS), store=address)
    session = lowwater.session(name)
    client: list[Any] = []
    for new in _steps(chance):
        how = chance.choice(["append", "prepare", "record"])
        before = len(internals(session).ledger.entries)
        try:
            if how == "record" and _is_answer(new[0]):
                session.record(_response(new[0]))
            elif how == "append":
                session.append(new)
            else:
                session.prepare([*client, *new])
        except LowwaterError as refused:
            assert isinstance(refused, BadInput | IllegalView), refused
            assert len(internals(session).ledger.entries) == before, "what was refused was kept"
            continue
        client += new
        _show_everything(session)
    lowwater.close()
    again = Lowwater(model="claude-opus-5-5", store=address)
    _show_everything(again.session(name))
    again.close()


def _is_answer(message: Any) -> bool:
    return isinstance(message, bytes) or (
        message.get("role", "assistant") == "assistant" and message.get("type") != "function_call_output"
    )


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_what_was_accepted_can_be_shown(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        _play(f"sqlite:///{tmp_path}/s.db?sync=normal", seed)


@pytest.mark.full
@pytest.mark.parametrize("first", range(1_000, 5_000, 500))
def test_what_was_accepted_can_be_shown_in_thousands(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 500):
        _play(f"sqlite:///{tmp_path}/s.db?sync=normal", seed)


_AGAIN = """
import json, sys
from lowwater import Lowwater
session = Lowwater(model="claude-opus-5-5", store=sys.argv[1]).session("s")
print(json.dumps([session.view(), session.history(), session.prepare().as_anthropic()]))
"""


def test_a_system_message_in_an_anthropic_list_becomes_the_system_prompt(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/s.db"
    lowwater = Lowwater(model="claude-opus-5-5", store=store)
    session = lowwater.session("s")
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ls", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}]}
    messages = [{"role": "system", "content": "Be careful."}, {"role": "user", "content": "List the files."}]
    session.prepare(messages)
    session.record({**call, "stop_reason": "tool_use", "usage": {"input_tokens": 30, "output_tokens": 9}})
    sent = session.prepare([*messages, call, result]).as_anthropic()
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert "Be careful." in json.dumps(sent["system"])
    assert session.history() == [*messages, call, result]
    lowwater.close()
    said = subprocess.run(
        [sys.executable, "-c", _AGAIN, store], capture_output=True, text=True, check=True
    ).stdout
    view, history, again = json.loads(said)
    assert view == history == [*messages, call, result]
    assert again["messages"] == sent["messages"]
    assert again["system"] == sent["system"]
