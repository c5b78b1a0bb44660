"""The Messages rules about compaction on demand: how it is asked for, its block, and thinking behind it."""

from typing import Any

import pytest

from lowwater.testing.provider import CallTools, CutOff, Provider, Refuse, Say, Think
from lowwater.testing.provider.answers import Call
from lowwater.testing.provider.anthropic import Signer, pieces

BETA = "compact-2026-09-04"
MODEL = "claude-opus-5-5"
SAID = "The user wanted the files listed; there are two."


def asking(draft: Any, beta: str = BETA, **asked: object) -> Any:
    draft.put("model", MODEL)
    draft.headers["anthropic-beta"] = beta
    draft.put("compaction", {"type": "summarize", **asked})
    return draft


def block_for(body: dict[str, Any], count: int, *, key: bytes = b"lowwater", **changed: object) -> Any:
    """The block that the provider gives for the first messages of a body."""
    signature = Signer(key).sign_block(
        body["model"], SAID, pieces({**body, "messages": body["messages"][:count]})
    )
    return {"type": "compaction", "content": SAID, "signature": signature, **changed}


def compacted(
    draft: Any,
    count: int = 3,
    *,
    beta: str = BETA,
    model: str = MODEL,
    key: bytes = b"lowwater",
    **changed: object,
) -> Any:
    """Put a block in place of the first messages."""
    draft.put("model", model)
    draft.headers["anthropic-beta"] = beta
    block = block_for(draft.body, count, key=key, **changed)
    draft.put("messages", [{"role": "assistant", "content": [block]}, *draft.at("messages")[count:]])
    return draft


def at_threshold(draft: Any) -> None:
    compacted(draft)
    draft.put("context_management", {"edits": [{"type": "compact_20260112"}]})


BROKEN = [
    ("compaction_needs_beta", lambda r: asking(r, beta="compact-2026-01-12"), "requires anthropic-beta:"),
    ("compaction_shape", lambda r: asking(r, type="forget"), "'summarize'"),
    ("compaction_shape", lambda r: asking(r, instructions=7), "valid string"),
    ("compaction_shape", lambda r: asking(r, instructions="x" * 20_000), "at most"),
    ("compaction_shape", lambda r: asking(r, keep=2), "Extra inputs"),
    ("compaction_supported", lambda r: (asking(r), r.put("model", "claude-haiku-4-5")), "not supported on"),
    ("compaction_supported", lambda r: compacted(r, model="claude-sonnet-4-5"), "not supported"),
    *(
        ("compaction_stands_alone", lambda r, name=name, value=value: (asking(r), r.put(name, value)), name)
        for name, value in {
            "context_management": {"edits": []},
            "stop_sequences": ["x"],
            "output_config": {"format": {"type": "json_schema"}},
            "tool_choice": {"type": "any"},
        }.items()
    ),
    ("block_needs_beta", lambda r: compacted(r, beta="x"), "Input tag 'compaction'"),
    ("block_as_returned", lambda r: compacted(r, citations=None), "compaction.citations: Extra inputs are"),
    ("block_as_returned", lambda r: compacted(r, content=""), "at least 1"),
    (
        "one_signed_block_first",
        lambda r: (compacted(r), r.insert("messages.0", {"role": "user", "content": "List the files."})),
        "messages remain in front",
    ),
    (
        "one_signed_block_first",
        lambda r: (compacted(r), r.insert("messages.1", r.at("messages")[0])),
        "one signed `compaction` block",
    ),
    ("no_threshold_behind_block", at_threshold, "compact_20260112"),
    ("block_signed", lambda r: compacted(r, key=b"other"), "Invalid `signature`"),
    ("block_signed", lambda r: compacted(r, content="Nothing."), "not what was signed"),
]


@pytest.mark.parametrize(("rule", "change", "says"), BROKEN)
def test_illegal_compactions_are_refused(
    rule: str, change: Any, says: str, messages_draft: Any, refused: Any
) -> None:
    change(messages_draft)
    assert refused(messages_draft, rule, says)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: compacted(r, content="Nothing."), "compaction_content_mismatch"),
        (lambda r: compacted(r, key=b"other"), "compaction_signature_invalid"),
        (
            lambda r: (compacted(r), r.insert("messages.0", {"role": "user", "content": "Hi."})),
            "compaction_block_misplaced",
        ),
    ],
    ids=["reworded", "another's", "misplaced"],
)
def test_some_errors_carry_a_code(change: Any, code: str, messages_draft: Any, send_draft: Any) -> None:
    change(messages_draft)
    assert send_draft(messages_draft).body["error"]["details"] == {"error_code": code}


@pytest.mark.parametrize("count", [1, 3, 4, 5])
def test_a_conversation_is_compacted_wherever_it_ends(count: int, messages_draft: Any, send: Any) -> None:
    asking(messages_draft, instructions="In one line.")
    messages_draft.put("messages", messages_draft.at("messages")[:count])
    with Provider(default=Say(SAID)) as provider:
        got = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers).body
    (block,) = got["content"]
    assert (block["type"], block["content"], got["stop_reason"]) == ("compaction", SAID, "compaction")
    assert (got["usage"]["input_tokens"], got["usage"]["output_tokens"]) == (0, 0)
    (spent,) = got["usage"]["iterations"]
    assert spent["type"] == "compaction"
    assert spent["output_tokens"] == -(-len(SAID) // 4)
    assert spent["input_tokens"] > 0


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (CutOff("Half of"), "max_tokens"),
        (CallTools((Call("bash"),)), "tool_use"),
        (Refuse(), "refusal"),
        (Say(""), "end_turn"),
    ],
    ids=["cut off", "a call", "refused", "silence"],
)
def test_without_a_summary_the_answer_is_empty_and_billed_all_the_same(
    answer: Any, stop: str, messages_draft: Any, send: Any
) -> None:
    asking(messages_draft)
    with Provider(default=answer) as provider:
        got = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers).body
    assert (got["content"], got["stop_reason"]) == ([], stop)
    assert got["usage"]["iterations"][0]["input_tokens"] > 0


def thought(draft: Any, at: int) -> None:
    """Put thinking into the answer at this place, as it was signed there."""
    if isinstance(draft.at(f"messages.{at}.content"), str):
        draft.put(f"messages.{at}.content", [{"type": "text", "text": draft.at(f"messages.{at}.content")}])
    draft.think(f"messages.{at}.content.0")


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        pytest.param(lambda _: None, "", id="unchanged"),
        pytest.param(lambda r: r.mark("messages.0.content.0"), "", id="a mark on the block"),
        pytest.param(
            lambda r: r.put("system", "Be very brief."), "thinking_bound", id="another system prompt"
        ),
        pytest.param(
            lambda r: r.insert("messages.1", {"role": "user", "content": "By the way."}),
            "thinking_bound",
            id="something between",
        ),
        pytest.param(lambda r: r.put("messages.1.content.1.text", "There is one."), "", id="behind it"),
    ],
)
def test_thinking_that_directly_follows_the_block_stays_good(
    spoil: Any, rule: str, messages_draft: Any, send_draft: Any, small: Provider
) -> None:
    messages_draft.put("model", MODEL)
    thought(messages_draft, 3)
    compacted(messages_draft, 3)
    spoil(messages_draft)
    send_draft(messages_draft)
    refusal = small.requests[-1].refusal
    assert (refusal.rule if refusal else "") == rule


def test_thinking_stays_good_over_a_second_compaction(messages_draft: Any, send_draft: Any) -> None:
    messages_draft.put("model", MODEL)
    more = [{"role": "assistant", "content": "Anything else?"}, {"role": "user", "content": "No."}]
    messages_draft.put("messages", [*messages_draft.at("messages"), *more])
    thought(messages_draft, 5)
    compacted(messages_draft, 3)
    compacted(messages_draft, 3)
    assert [message["role"] for message in messages_draft.at("messages")] == [
        "assistant",
        "assistant",
        "user",
    ]
    got = send_draft(messages_draft).body
    assert got["type"] == "message", got
    assert "input_transformations" not in got


def test_thinking_behind_a_block_is_bound_to_the_block(
    messages_draft: Any, send_draft: Any, refused: Any
) -> None:
    messages_draft.put("model", MODEL)
    whole = messages_draft.at("messages")[:3]
    compacted(messages_draft, 3)
    thought(messages_draft, 1)
    assert send_draft(messages_draft).body["type"] == "message"
    messages_draft.put("messages", [*whole, *messages_draft.at("messages")[1:]])
    refused(messages_draft, "thinking_bound", "different conversation")


def test_a_block_streams_whole(messages_draft: Any, send: Any) -> None:
    asking(messages_draft)
    messages_draft.put("stream", True)
    with Provider(default=Think("Hm.", Say(SAID))) as provider:
        raw = send(provider, messages_draft.path, messages_draft.body, messages_draft.headers).raw.decode()
    assert raw.count("content_block_start") == 2, "the event's name and its type"
    assert "content_block_delta" not in raw
    assert SAID in raw
    assert "Hm." not in raw
