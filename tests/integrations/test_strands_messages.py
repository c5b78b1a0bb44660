"""Strands' messages to the ledger and back, without Strands: nothing is lost, and edits find their block."""

from itertools import pairwise
from typing import Any

import pytest

from lowwater.errors import BadSetting
from lowwater.integrations.strands.messages import answer_of, message_of, view_of
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session

Json = dict[str, Any]
EVERYTHING: list[Json] = [
    {
        "role": "user",
        "content": [{"text": "look"}, {"image": {"format": "png", "source": {"bytes": b"\x89P"}}}],
    },
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            {"reasoningContent": {"redactedContent": b"\x00\x01"}},
            {"text": "both"},
            {"toolUse": {"toolUseId": "a", "name": "read", "input": {"n": 1.0, "deep": [None, "é"]}}},
            {"toolUse": {"toolUseId": "b", "name": "read", "input": {}}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "toolResult": {
                    "toolUseId": "a",
                    "status": "success",
                    "content": [{"json": {"x": 1}}, {"text": "t"}],
                }
            },
            {"toolResult": {"toolUseId": "b", "status": "error", "content": []}},
            {"cachePoint": {"type": "default"}},
            {"video": {"format": "mp4", "source": {"bytes": b"\x00"}}},
            {
                "document": {
                    "format": "pdf",
                    "name": "d",
                    "source": {"location": {"type": "s3", "uri": "s3://d"}},
                }
            },
        ],
    },
    {"role": "assistant", "content": [{"text": "done"}], "metadata": {"usage": {}}},
]


def opened(model: str) -> Session:
    return Lowwater(model=model, store="memory:").session()


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-haiku-4-5"])
def test_what_is_not_compacted_is_sent_as_the_very_same_object(model: str):
    session = opened(model)
    for length in range(1, len(EVERYTHING) + 1, 2):
        request = session.prepare([message_of(message) for message in EVERYTHING[:length]])
        view = view_of(internals(session).ledger, EVERYTHING[:length], request, marks=False)
        assert all(sent is held for sent, held in zip(view, EVERYTHING[:length], strict=True))


def long_talk(turns: int) -> list[Json]:
    talk: list[Json] = []
    for turn in range(turns):
        calls = [f"{turn}-{at}" for at in range(2)]
        uses = [{"toolUse": {"toolUseId": call, "name": "read", "input": {"n": call}}} for call in calls]
        results = [
            {
                "toolResult": {
                    "toolUseId": call,
                    "status": "success",
                    "content": [{"text": " ".join(f"{call}:{word}" for word in range(400))}],
                }
            }
            for call in calls
        ]
        talk += [
            {"role": "user", "content": [{"text": f"question {turn}"}]},
            {"role": "assistant", "content": [{"text": "reading"}, *uses]},
            {"role": "user", "content": results},
            {"role": "assistant", "content": [{"text": f"answer {turn}"}]},
        ]
    return [*talk, {"role": "user", "content": [{"text": "and now?"}]}]


def test_a_pruned_view_keeps_every_call_beside_its_result():
    talk, session = long_talk(60), opened("claude-haiku-4-5")
    request = session.prepare([message_of(message) for message in talk])
    view = view_of(internals(session).ledger, talk, request, marks=True)
    assert internals(session).last_compaction is not None
    placeholders = [
        block["toolResult"]["content"][0]["text"]
        for message in view
        for block in message["content"]
        if "toolResult" in block and "elided" in block["toolResult"]["content"][0]["text"]
    ]
    assert len(placeholders) > 50
    assert [_calls(message) for message in view] == [_calls(message) for message in talk]
    points = [message for message in view if any("cachePoint" in block for block in message["content"])]
    assert 1 <= len(points) <= 4
    assert view[-1]["content"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}


def test_a_summary_never_stands_beside_a_message_of_its_role():
    talk, session = long_talk(60), opened("claude-haiku-4-5")
    internals(session).sync_messages([message_of(message) for message in talk])
    session.compress()
    session.compress(focus="question 3")
    request = session.prepare([message_of(message) for message in talk])
    view = view_of(internals(session).ledger, talk, request, marks=False)
    roles = [message["role"] for message in view]
    assert len(view) < len(talk)
    assert all(first != second for first, second in pairwise(roles))
    assert view[-1]["content"][-1] == {"text": "and now?"}


def _calls(message: Json) -> list[str]:
    return [
        block[kind]["toolUseId"]
        for block in message["content"]
        for kind in ("toolUse", "toolResult")
        if kind in block
    ]


@pytest.mark.parametrize(("inclusive", "uncached"), [(True, 10), (False, 100)])
def test_usage_is_told_as_its_provider_means_it(inclusive: bool, uncached: int):
    usage = {"inputTokens": 100, "outputTokens": 5, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 30}
    answer = answer_of(EVERYTHING[3], usage, stop="end_turn", inclusive=inclusive)
    session = opened("claude-haiku-4-5")
    session.prepare([message_of(EVERYTHING[0])])
    session.record(answer)
    totals = session.status().totals
    assert [totals.prompt, totals.cache_read, totals.output] == [uncached + 90, 60, 5]


def test_without_strands_one_sentence_says_what_to_install():
    with pytest.raises(BadSetting, match=r"pip install 'lowwater\[strands\]'"):
        from lowwater.integrations.strands import LowwaterConversationManager  # noqa: F401
