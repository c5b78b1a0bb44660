"""One request that its client wants untouched: not a byte of it changes, and it is recorded all the same."""

import json
from typing import Any

import pytest

from lowwater.core.events import Compaction
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, calls_a_tool, working
from tests.gateway.test_gateway_shadow import PATHS, body_of

CEILING = Settings(compression=CompressionSettings(max_view_tokens=12_000, protect_last_n=4))


@pytest.mark.parametrize("format", PATHS)
def test_not_a_byte_of_it_changes_and_its_bill_is_kept(start: Starting, format: Any) -> None:
    def script(seen: Seen) -> Any:
        return Say(text=f"answer {len(seen.body.get('messages') or seen.body['input'])}")

    through = start(script, settings=CEILING, recall=True)
    auth = {} if format == "anthropic" else {"authorization": "Bearer sk-one", "x_api_key": ""}
    bodies = [body_of(format, turn, stream=False) for turn in range(6)]
    answers = [through.post(body, PATHS[format], x_lowwater_untouched="on", **auth) for body in bodies]
    assert [seen.raw for seen in through.provider.requests] == bodies
    assert {answer.headers["x-lowwater-request"] for answer in answers} == {"untouched"}
    assert all("x-lowwater-untouched" not in seen.headers for seen in through.provider.requests)
    (account,) = through.store.accounts()
    assert len(account.records) == 6
    assert all(record.usage for record in account.records)
    assert not [event for event in account.events if isinstance(event, Compaction)]
    listed = account.session
    messages = through.store.messages(listed.name, 1, listed.messages + 1, version=listed.version)
    assert "answer 11" in messages[-1].message.text


def test_the_request_after_it_is_compacted_again(start: Starting) -> None:
    through = start(calls_a_tool, settings=CEILING, recall=True)
    messages = working(through, 12)
    (account,) = through.store.accounts()
    compactions = [event for event in account.events if isinstance(event, Compaction)]
    assert compactions
    body = {
        "model": MODEL,
        "max_tokens": 1_000,
        "system": "You work.",
        "tools": ANTHROPIC_TOOLS,
        "messages": messages,
    }
    raw = json.dumps(body).encode()
    answer = through.post(raw, x_lowwater_untouched="ON")
    assert answer.headers["x-lowwater-request"] == "untouched"
    assert through.provider.requests[-1].raw == raw
    messages += [
        {"role": "assistant", "content": answer.json()["content"]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "the very last line"}
                for block in answer.json()["content"]
                if block["type"] == "tool_use"
            ]
            or "go on",
        },
    ]
    after = through.post(body | {"messages": messages})
    assert after.headers["x-lowwater-request"] == "changed"
    assert after.headers["x-lowwater-session"] == answer.headers["x-lowwater-session"]
    assert len(through.provider.requests[-1].raw) < len(raw) / 2
    (account,) = through.store.accounts()
    assert len(account.records) == 14


@pytest.mark.parametrize("value", ["off", "", "no"])
def test_any_other_value_asks_for_nothing(start: Starting, value: str) -> None:
    through = start(lambda _: Say(text="yes"), recall=True)
    answer = through.post(body_of("anthropic", 1, stream=False), x_lowwater_untouched=value)
    assert answer.headers["x-lowwater-request"] == "recall-added"
