"""A client of the Responses API keeps items and writes them anew: its list is known again all the same."""

import json
from typing import Any

import pytest

from lowwater.core.formats.codec import decode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message
from lowwater.core.reconcile import entries_for, reconcile

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
ANSWER: list[Any] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Looking.", "annotations": [], "logprobs": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": '{"p": 1}'},
    {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "ls", "arguments": "{}"},
]
OUTPUTS = [
    {"type": "function_call_output", "call_id": f"c{number}", "output": f"out {number}"} for number in (1, 2)
]
DONE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
NEXT = {"role": "user", "content": "And?"}
KNOWN = [USER, *ANSWER, *OUTPUTS, DONE]


def decoded(items: list[Any]) -> list[Message]:
    return decode_messages([json.dumps(item).encode() for item in items], "openai_responses")


def held(items: list[Any]) -> Ledger:
    ledger = Ledger()
    found = reconcile(ledger, decoded(items))
    return ledger.extend(entries_for(found, [10] * len(found.new), 0.0))


def without(*names: str) -> list[Any]:
    return [{name: value for name, value in item.items() if name not in names} for item in KNOWN]


def as_text(item: Any) -> Any:
    return {**item, "content": item["content"][0]["text"]} if "content" in item else item


@pytest.mark.parametrize(
    "again",
    [
        KNOWN,
        without("id", "status"),
        [item for item in KNOWN if item["type"] != "reasoning"],
        list(map(as_text, KNOWN)),
        [{**item, "arguments": '{"p":1}'} if item.get("arguments") == '{"p": 1}' else item for item in KNOWN],
        [{**item, "x_trace": 1} for item in KNOWN],
    ],
    ids=["as it was", "no ids", "no reasoning", "plain text", "arguments respelled", "more fields"],
)
def test_a_list_written_anew_is_known(again: list[Any]) -> None:
    found = reconcile(held(KNOWN), decoded([*again, NEXT]))
    assert (found.known, found.rewind_to, [message.text for message in found.new]) == (5, None, ["And?"])


def test_an_answer_that_grew_by_an_item_is_another() -> None:
    ledger = held(KNOWN[:-1])
    more = [*KNOWN[:4], {**ANSWER[2], "call_id": "c9", "id": "fc_9"}, *KNOWN[4:]]
    found = reconcile(ledger, decoded(more))
    assert found.known == 1
    assert found.rewind_to is not None
