"""Each rule of the Responses API refuses what it is there for, in the API's words; a legal request breaks none."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.testing.provider import Say, Think
from lowwater.testing.provider.prompt import Ids, ReceivedRequest, Refusal, first_refusal, quarter
from lowwater.testing.provider.responses_api import ResponsesDialect
from tests.testing.provider.responses_draft import HEADERS, draft, sealed

OTHER = "Zm9yZWlnbg=="
BREAK = {"mode": "explicit"}
Change = Callable[[Any], object]


def dialect() -> ResponsesDialect:
    return ResponsesDialect(ids=Ids(), key=b"lowwater")


def refusal(body: Any, *, context: int = 50_000, headers: Any = None, problem: str = "") -> Refusal | None:
    incoming = ReceivedRequest(
        headers=HEADERS if headers is None else headers,
        size=1,
        body=body,
        problem=problem,
        context_length=context,
        count=quarter,
    )
    return first_refusal(dialect().rules, incoming)


def marked(body: Any, count: int) -> Any:
    part = {"type": "input_text", "text": "x", "prompt_cache_breakpoint": BREAK}
    body["input"].append({"role": "user", "content": [part] * count})
    return body


BROKEN: list[Any] = [
    ("model_given", lambda b: b.pop("model"), "you must provide a model parameter"),
    ("parameters_of_chat", lambda b: b.update(messages=[]), "this parameter has moved to 'input'"),
    ("parameters_of_chat", lambda b: b.update(max_tokens=9), "has moved to 'max_output_tokens'"),
    ("input_given", lambda b: b.pop("input"), "Missing required parameter: 'input'."),
    ("input_given", lambda b: b.update(input=7), "but got an integer instead"),
    ("item_shape", lambda b: b["input"].append("x"), "expected an input item, but got a string"),
    ("item_shape", lambda b: b["input"][2].update(type="tool_use"), "Invalid value: 'tool_use'"),
    ("item_shape", lambda b: b["input"][2].pop("name"), "Missing required parameter: 'input[2].name'."),
    ("item_shape", lambda b: b["input"][4].pop("output"), "Missing required parameter: 'input[4].output'."),
    ("item_shape", lambda b: b["input"][1].pop("summary"), "Missing required parameter: 'input[1].summary'."),
    ("known_roles", lambda b: b["input"][0].update(role="tool"), "Invalid value: 'tool'."),
    ("content_given", lambda b: b["input"][0].pop("content"), "Missing required parameter:"),
    ("content_given", lambda b: b["input"][4].update(output=7), "Invalid type for 'input[4].output'"),
    (
        "content_shape",
        lambda b: b["input"][8].update(content=[{"type": "text", "text": "x"}]),
        "Invalid value: 'text'. Supported values are: 'input_text'",
    ),
    (
        "content_shape",
        lambda b: b["input"][7].update(content=[{"type": "input_text", "text": "x"}]),
        "Supported values are: 'output_text', and 'refusal'.",
    ),
    ("instructions_are_text", lambda b: b.update(instructions=[]), "Invalid type for 'instructions'"),
    (
        "tool_shape",
        lambda b: b.update(tools=[{"type": "function", "function": {"name": "x"}}]),
        "Missing required parameter: 'tools[0].name'.",
    ),
    ("name_lengths", lambda b: b["tools"][0].update(name="x" * 65), "maximum length 64"),
    ("previous_response_known", lambda b: b.update(previous_response_id="resp_0"), "Previous response with"),
    ("previous_response_known", lambda b: b.update(conversation="c"), "Conversation with id 'c' not found."),
    ("references_known", lambda b: b["input"].insert(0, {"id": "msg_0"}), "Item with id 'msg_0' not found."),
    ("references_known", lambda b: b["input"][1].pop("encrypted_content"), "Items are not persisted"),
    ("item_ids_unique", lambda b: b["input"][3].update(id="fc_1_by_rs_1"), "Duplicate item found with id"),
    ("sealed_here", lambda b: b["input"][1].update(encrypted_content=OTHER), "could not be verified"),
    ("outputs_called", lambda b: b["input"].pop(2), "No tool call found for function call output with"),
    ("outputs_called", lambda b: b["input"].insert(1, b["input"].pop(4)), "No tool call found"),
    ("calls_answered", lambda b: b["input"].pop(4), "No tool output found for function call c1."),
    (
        "reasoning_followed",
        lambda b: (
            b["input"].insert(
                1, {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": sealed()}
            )
            or b["input"].insert(2, {"role": "user", "content": "x"})
        ),
        "Item 'rs_0' of type 'reasoning' was provided without its required following item.",
    ),
    ("reasoning_followed", lambda b: b["input"].pop(7), "without its required following item"),
    ("reasoning_given", lambda b: b["input"].pop(1), "Item 'fc_1_by_rs_1' of type 'function_call' was"),
    ("least_output", lambda b: b.update(max_output_tokens=15), "Expected a value >= 16, but got 15"),
    ("breakpoints_supported", lambda b: marked(b, 1), "is not supported on this model"),
    ("breakpoints_supported", lambda b: (marked(b, 5), b.update(model="gpt-5.6")), "A maximum of 4 explicit"),
    ("lifetime_sold", lambda b: b.update(prompt_cache_options={"ttl": "1h"}), "'30m' and '12h'"),
    ("input_fits", lambda b: b["input"][0].update(content="x" * 210_000), "Your input exceeds the context"),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_a_broken_rule_is_named_in_the_apis_words(rule: str, change: Change, says: str) -> None:
    body = draft()
    assert refusal(body) is None
    change(body)
    found = refusal(body)
    assert found is not None
    assert (found.rule, says in found.violation.message) == (rule, True), found


def test_every_rule_has_a_request_that_breaks_it() -> None:
    of_chat = {"api_key", "readable_json"}
    assert {rule.__name__ for rule in dialect().rules} == {rule for rule, _, _ in BROKEN} | of_chat


def test_headers_and_json() -> None:
    refused = refusal(draft(), headers={})
    assert refused is not None
    assert (refused.rule, refused.violation.status) == ("api_key", 401)
    unread = refusal({}, problem="x")
    assert unread is not None
    assert unread.rule == "readable_json"


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.update(input="hi"),
        lambda b: b["input"].pop(1) and [b["input"][at].pop("id") for at in (1, 2)],
        lambda b: b["input"].insert(4, {"role": "user", "content": "Wait."}),
        lambda b: (b["input"][0].update(content="x" * 210_000), b.update(truncation="auto")),
        lambda b: (marked(b, 4), b.update(model="gpt-5.6", prompt_cache_options={"ttl": "12h"})),
        lambda b: b["input"].append({"type": "compaction", "encrypted_content": sealed("All.")}),
    ],
    ids=["a text", "no reasoning, no ids", "words between", "truncated", "four breakpoints", "compaction"],
)
def test_what_is_allowed(change: Change) -> None:
    body = draft()
    change(body)
    assert refusal(body) is None


SCALARS = st.none() | st.booleans() | st.integers(-2, 2**40) | st.text(max_size=3)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=4), SCALARS, max_size=2)
OPTIONS = {"include": ["reasoning.encrypted_content"], "truncation": "auto", "prompt_cache_options": {}}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for step, held in steps for found in places(held, (*path, step)))]


@settings(max_examples=150)
@given(data=st.data())
def test_any_value_anywhere_is_answered_or_refused(data: st.DataObject) -> None:
    body = draft() | OPTIONS
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(places(body)[1:]))
        body = deepcopy(body)
        holder: Any = body
        for step in path:
            holder = holder[step]
        holder[last] = data.draw(VALUES)
    speaker = dialect()
    incoming = ReceivedRequest(headers=HEADERS, size=1, body=body, context_length=10_000, count=quarter)
    if first_refusal(speaker.rules, incoming) is None:
        for answer in (Say("ok"), Think("hm")):
            assert list(speaker.events(speaker.reply(answer, incoming), incoming))
