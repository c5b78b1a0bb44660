"""Compaction behind a client's back: legal requests, a stable prefix, honest usage, nothing lost."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from lowwater.gateway.client_request import ClientRequest, read_client_request
from lowwater.gateway.open_sessions import OpenSessions
from lowwater.gateway.options import ANTHROPIC, GatewayOptions
from lowwater.gateway.turns import GatewayTurn, GatewayTurns, RequestContext
from lowwater.session.dependencies import ManualClock
from lowwater.session.internals import internals
from lowwater.settings import CacheTtl, CompressionSettings, ModelSettings, Settings
from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Answer, Fail, Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through, calls_a_tool, working

CEILING = Settings(compression=CompressionSettings(max_view_tokens=16_000, protect_last_n=4))


def bare(value: Any) -> Any:
    """Return a message without cache marks, text always in blocks."""
    if isinstance(value, list):
        return [bare(each) for each in value]
    if isinstance(value, dict):
        return {
            name: [{"type": "text", "text": each}]
            if name == "content" and isinstance(each, str)
            else bare(each)
            for name, each in value.items()
            if name != "cache_control"
        }
    return value


def moves(requests: list[Seen]) -> int:
    """Return how often a request did not go on from the one before it."""
    lists = [bare(seen.body["messages"]) for seen in requests]
    return sum(later[: len(earlier)] != earlier for earlier, later in pairwise(lists))


def marks(body: bytes) -> int:
    return body.count(b'"cache_control"')


def marked(messages: list[Any]) -> list[Any]:
    """Return a client's list with its own mark on the last message, as Claude Code sets it."""
    last = messages[-1]
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return [*messages[:-1], {**last, "content": blocks}]


def working_with_marks(through: Through, turns: int, *, ttl: str = "") -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
    system = [
        {
            "type": "text",
            "text": "You work.",
            "cache_control": {"type": "ephemeral"} | ({"ttl": ttl} if ttl else {}),
        }
    ]
    for turn in range(turns):
        sent = marked(messages)
        if ttl:
            sent[-1]["content"][-1]["cache_control"]["ttl"] = ttl
        answer = through.post(
            {
                "model": MODEL,
                "max_tokens": 1_000,
                "system": system,
                "tools": ANTHROPIC_TOOLS,
                "messages": sent,
            }
        )
        assert answer.status_code == 200, answer.text
        content = answer.json()["content"]
        messages.append({"role": "assistant", "content": content})
        use = next(block for block in content if block["type"] == "tool_use")
        said = f"line {turn} of the file\n" * 600
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": said}]}
        )
    return messages


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_a_long_session_stays_below_the_ceiling_and_loses_nothing(start: Starting) -> None:
    through = start(calls_a_tool, settings=CEILING)
    messages = working(through, 24, size=600)
    assert through.provider.refusals == ()
    (session,) = through.store.sessions()
    assert session.compactions >= 1
    kept = through.store.messages(session.name, 1, 1_000, version=session.version)
    # The last result was not sent yet.
    assert [bare(msgspec.json.decode(one.message.wire.raw)) for one in kept if one.message.wire] == bare(
        messages[:-1]
    )
    sizes = [len(seen.raw) for seen in through.provider.requests]
    assert max(sizes) < 0.5 * len(msgspec.json.encode(messages))
    assert moves(list(through.provider.requests)) == session.compactions


@pytest.mark.moves_prefix(reason="a ceiling compacts")
@pytest.mark.parametrize("ttl", ["", "1h"], ids=["5m", "1h"])
def test_a_clients_marks_are_placed_anew_where_the_view_changed(start: Starting, ttl: str) -> None:
    through = start(calls_a_tool, settings=CEILING)
    working_with_marks(through, 24, ttl=ttl)
    assert through.provider.refusals == ()
    (session,) = through.store.sessions()
    assert session.compactions >= 1
    raws = [seen.raw for seen in through.provider.requests]
    assert all(1 <= marks(raw) <= 4 for raw in raws)
    assert all((b'"ttl":"1h"' in raw.replace(b" ", b"")) == bool(ttl) for raw in raws)
    assert moves(list(through.provider.requests)) == session.compactions


@pytest.mark.parametrize(
    ("marked_for", "configured", "is_warm"), [("5m", "1h", False), ("1h", "5m", True)], ids=["5m", "1h"]
)
def test_after_a_pause_the_cache_is_what_the_clients_own_marks_paid_for(
    marked_for: CacheTtl, configured: CacheTtl, is_warm: bool
) -> None:
    clock, options = (
        ManualClock(),
        GatewayOptions(settings=Settings(model=ModelSettings(cache_ttl=configured))),
    )
    turns = GatewayTurns(OpenSessions(MemoryStore(), options, clock=clock), options)
    mark = {"type": "ephemeral", "ttl": marked_for}

    def begun(*said: str) -> GatewayTurn:
        listed: list[dict[str, Any]] = [
            {"role": ("user", "assistant")[at % 2], "content": [{"type": "text", "text": text}]}
            for at, text in enumerate(said)
        ]
        listed[-1]["content"][0]["cache_control"] = mark
        body = msgspec.json.encode({"model": MODEL, "max_tokens": 99, "messages": listed})
        request = read_client_request("/v1/messages", body, {})
        assert isinstance(request, ClientRequest)
        return turns.begin(request, RequestContext(tenant="t", base_url=ANTHROPIC))

    said = "The reader reads a line twice. " * 2_000
    first = begun(said)
    usage = {
        "input_tokens": 0,
        "cache_creation_input_tokens": first.request.tokens,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    }
    content = [{"type": "text", "text": "well"}]
    answer = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    turns.end(first, msgspec.json.encode(answer | {"stop_reason": "end_turn", "usage": usage}))
    clock.advance(600)
    second = begun(said, "well", "go on")
    turns.accept(second)
    assert (internals(second.session).expected_usage.cache_read > 0) == is_warm
    explained = second.session.explain()
    assert (
        "The cache is warm" in explained,
        "Nothing of the prompt should be in the cache" in explained,
    ) == (
        is_warm,
        not is_warm,
    )


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_a_client_without_marks_gets_none(start: Starting) -> None:
    through = start(calls_a_tool, settings=CEILING)
    working(through, 24, size=600)
    assert all(marks(seen.raw) == 0 for seen in through.provider.requests)


def test_our_marks_save_money_where_the_operator_wants_them(start: Starting) -> None:
    through = start(calls_a_tool, marks="auto")
    working(through, 6, size=300)
    assert all(1 <= marks(seen.raw) <= 4 for seen in through.provider.requests)
    (account,) = through.store.accounts()
    assert sum(record.usage.cache_read for record in account.records if record.usage) > 0


@pytest.mark.moves_prefix(reason="the window is smaller than anybody said")
def test_a_prompt_that_is_too_long_is_compacted_and_sent_once_more(start: Starting) -> None:
    through = start(calls_a_tool, default_context=30_000, marks="auto")
    working(through, 24)
    refused = [seen for seen in through.provider.requests if seen.status == 400]
    assert len(refused) == 1, "the limit is learned from the first refusal"
    assert all("too long" in seen.refusal.violation.message for seen in refused if seen.refusal)
    (session,) = through.store.sessions()
    assert (session.turns, session.compactions >= 1) == (24, True)


def test_a_prompt_that_cannot_be_made_smaller_gets_the_providers_own_refusal(start: Starting) -> None:
    through = start(default_context=2_000)
    answer = through.post(
        {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "word " * 4_000}]}
    )
    assert answer.status_code == 400
    assert "too long" in answer.json()["error"]["message"]


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_counting_tells_what_would_really_be_sent(start: Starting) -> None:
    through = start(calls_a_tool, settings=CEILING)
    messages = working(through, 24, size=600)
    asked = {"model": MODEL, "messages": messages, "tools": ANTHROPIC_TOOLS, "system": "You work."}
    # A stranger's list is new here, and is compacted as soon as it is sent.
    for key in ("sk-one", "sk-other"):
        counted = through.post(asked, "/v1/messages/count_tokens", x_api_key=key).json()["input_tokens"]
        usage = through.post({**asked, "max_tokens": 9}, x_api_key=key).json()["usage"]
        named = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        assert counted == sum(usage.get(name) or 0 for name in named)
        assert counted < 20_000


SUMMARY = """<analysis>
We looked at the file that had the defect and at its neighbours.
</analysis>
<summary>
1. The user asked to find the defect in the reading of files and to mend it.
2. The defect is in src/file_1.py, where a line is read twice after a retry.
3. The next step is to write a test that fails without the change we made.
4. Nothing else was asked for, and the user forbade any change to the lexer.
</summary>"""


def compacts_itself(seen: Seen) -> Any:
    last = seen.body["messages"][-1]["content"]
    asks = isinstance(last, str) and "detailed summary of the conversation" in last
    return Say(text=SUMMARY) if asks else calls_a_tool(seen)


def test_a_clients_own_compaction_is_not_disturbed_and_what_follows_goes_on(start: Starting) -> None:
    through = start(compacts_itself, joins_by_summary=True)
    messages = working(through, 5, size=50)
    question = "Your task is to create a detailed summary of the conversation so far."
    asked = {"model": MODEL, "max_tokens": 900, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    done = [*messages, {"role": "user", "content": question}]
    sent = through.post(asked | {"messages": done})
    assert through.provider.requests[-1].raw == sent.request.content
    summary = sent.json()["content"][0]["text"].partition("<summary>")[2].removesuffix("</summary>")
    shorter = [
        {
            "role": "user",
            "content": f"This session is being continued from a previous conversation.\nSummary:{summary}\nGo on.",
        }
    ]
    through.post(asked | {"messages": shorter})
    assert through.provider.requests[-1].body["messages"] == shorter
    (session,) = through.store.sessions()
    # Eleven of the work, the shorter list and its answer; the question was never part of the conversation, but was billed.
    assert (session.turns, session.messages) == (7, 13)


def test_another_tenant_with_the_same_summary_does_not_go_on(start: Starting) -> None:
    through = start(compacts_itself)
    messages = working(through, 3, size=50)
    asked = {"model": MODEL, "max_tokens": 900, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    question = "Your task is to create a detailed summary of the conversation so far."
    through.post(asked | {"messages": [*messages, {"role": "user", "content": question}]})
    through.post(asked | {"messages": [{"role": "user", "content": SUMMARY}]}, x_api_key="sk-two")
    assert len(through.store.sessions()) == 2


@pytest.mark.moves_prefix(reason="the window is smaller than anybody said")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "inside a stream"])
def test_a_responses_prompt_that_is_too_long_is_compacted_and_sent_once_more(
    start: Starting, stream: bool
) -> None:
    through = start(lambda _: Say(text="well"), default_context=12_000)
    items: list[Any] = [{"role": "user", "content": "read the files"}]
    for turn in range(12):
        call = {"type": "function_call", "call_id": f"c{turn}", "name": "read", "arguments": "{}"}
        said = f"line {turn} of the file\n" * 400
        items += [call, {"type": "function_call_output", "call_id": f"c{turn}", "output": said}]
    body = {"model": "gpt-5.5", "input": items, "stream": stream, "max_output_tokens": 500}
    answer = through.post(body, "/v1/responses", authorization="Bearer k")
    assert answer.status_code == 200, answer.text
    assert "well" in answer.text
    assert "context_length_exceeded" not in answer.text
    assert len(through.provider.requests) == 2
    (session,) = through.store.sessions()
    assert session.turns == 1


def test_a_refusal_of_many_images_is_recovered_by_sending_fewer(start: Starting) -> None:
    """Anthropic's limit of 2000 pixels holds for requests with more than twenty images."""

    def provider(seen: Seen) -> Answer:
        if str(seen.body["messages"]).count("'image'") > 3:
            said = (
                "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max "
                "allowed size for many-image requests: 2000 pixels"
            )
            return Fail(status=400, type="invalid_request_error", message=said)
        return calls_a_tool(seen)

    through = start(provider)
    data = {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 200}
    messages: list[Any] = []
    for number in range(6):
        picture = {"type": "image", "source": data}
        said = [{"type": "text", "text": f"Look at this, {number}."}, picture]
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": f"I see {number}."}]
    body = {"model": MODEL, "max_tokens": 9, "tools": ANTHROPIC_TOOLS}
    asked = [*messages, {"role": "user", "content": "And now?"}]
    assert through.post(body | {"messages": asked}).status_code == 200
    assert all(f"Look at this, {number}." in str(through.provider.requests[-1].body) for number in range(6))
