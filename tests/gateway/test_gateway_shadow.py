"""Shadow mode: not a byte changes, and the bill says what it would have cost."""

import json
import re
from typing import Any

import httpx2
import pytest
from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.efficiency import total_of
from lowwater.core.events import Compaction
from lowwater.core.messages import Format
from lowwater.core.tokens.counting import rules_for
from lowwater.gateway.options import SHADOW_SOURCE, SOURCE
from lowwater.session.factories import counter_for
from lowwater.settings import CompressionSettings, Settings
from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Call, CallTools, Fail, Provider, Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through, calls_a_tool
from tests.gateway.test_gateway_summaries import talking, talks

CEILING = Settings(compression=CompressionSettings(max_view_tokens=12_000, protect_last_n=4))
PATHS: dict[Format, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}
SHADOW: dict[str, Any] = {"shadow": True, "recall": True, "summaries": "api-keys"}
MARK = {"type": "ephemeral"}
LINE = "src/module_{0}/part_{1}.py:{1}: expected {0}.{1}, found none of the values that were read before\n"


def body_of(format: Format, turn: int, *, stream: bool) -> bytes:
    """Return the raw body of a turn, in a spelling that nobody would write again by accident."""
    said: list[Any] = []
    for number in range(2 * turn + 1):
        text = f"turn {number}: " + LINE.format(number, number) * 60
        said.append({"role": "assistant" if number % 2 else "user", "content": text})
    body: dict[str, Any] = {"model": MODEL if format == "anthropic" else "gpt-5.5", "stream": stream}
    function = {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    match format:
        case "anthropic":
            tool = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
            body |= {"max_tokens": 900, "messages": said, "tools": [tool]}
        case "openai_chat":
            body |= {"messages": said, "tools": [{"type": "function", "function": function}]}
        case "openai_responses":
            body |= {"input": said, "store": False, "tools": [{"type": "function", **function}]}
    return json.dumps(body, indent=3).encode() + b"\n \n"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", PATHS)
def test_not_a_byte_changes(start: Starting, format: Format, stream: bool) -> None:
    def script(seen: Seen) -> Any:
        return Say(text=f"answer {len(seen.body.get('messages') or seen.body['input'])}")

    through, direct = start(script, settings=CEILING, **SHADOW), start(script)
    straight = Through(provider=direct.provider, url=direct.provider.anthropic_base_url, store=direct.store)
    bodies = [body_of(format, turn, stream=stream) for turn in range(12)]
    auth = {} if format == "anthropic" else {"authorization": "Bearer sk-one", "x_api_key": ""}
    answers = [through.post(body, PATHS[format], **auth) for body in bodies]
    assert [seen.raw for seen in through.provider.requests] == bodies
    assert {answer.headers["x-lowwater-request"] for answer in answers} == {"shadow"}
    assert [answer.content for answer in answers] == [
        straight.post(body, PATHS[format], **auth).content for body in bodies
    ]
    (account,) = through.store.accounts()
    assert any(isinstance(event, Compaction) for event in account.events), "it would have compacted"
    assert [record.recall for record in account.records] == [None] * 12, "nobody was offered recall"


def test_a_refusal_is_not_tried_again_and_a_count_is_the_clients_own(start: Starting) -> None:
    too_long = Fail(
        status=400,
        type="invalid_request_error",
        message="prompt is too long: 250000 tokens > 200000 maximum",
    )
    through = start([too_long], settings=CEILING, **SHADOW)
    body = body_of("anthropic", 8, stream=False)
    assert through.post(body).status_code == 400
    assert [seen.raw for seen in through.provider.requests] == [body]
    assert through.post(body, "/v1/messages/count_tokens").status_code == 200
    assert through.provider.requests[-1].raw == body


def test_recall_tools_of_the_clients_own_are_answered_by_the_client(start: Starting) -> None:
    call = CallTools(calls=(Call(name="lowwater_expand", arguments={"handle": "lw:1"}),))
    through = start([call], **SHADOW)
    tool = {"name": "lowwater_expand", "input_schema": {"type": "object"}}
    messages = [{"role": "user", "content": "hi"}]
    answer = through.post({"model": MODEL, "max_tokens": 99, "messages": messages, "tools": [tool]})
    assert answer.json()["content"][0]["name"] == "lowwater_expand"
    assert len(through.provider.requests) == 1


def test_shadow_sessions_do_not_become_live_ones(start: Starting) -> None:
    """Not even in one store: a live gateway begins the same conversation anew."""
    store = MemoryStore()
    through = {"shadow": start(store=store, **SHADOW), "live": start(store=store)}
    for turn, kind in enumerate(("shadow", "shadow", "live", "live", "shadow")):
        through[kind].post(body_of("anthropic", turn, stream=False))
    sources = {each.about.source.split(":")[0]: each.turns for each in store.sessions()}
    assert sources == {SHADOW_SOURCE: 3, SOURCE: 2}


class Worked(Struct, frozen=True, kw_only=True):
    """What came of a session of many turns."""

    compacted: list[tuple[int, str, tuple[str, ...]]]
    """For each compaction, how many turns were before it, why it was made, and how."""
    paid: int
    """Nano-dollars, by what the provider reported."""
    would: int
    estimated: int | None
    summaries: int


def work(through: Through, turns: int, *, openai: bool = False, long_at: int = -1) -> Worked:
    """Work as an agent does that keeps its list and places its marks as Claude Code does; one result may be very long."""
    messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
    for turn in range(turns):
        if openai:
            tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
            body: dict[str, Any] = {"model": "gpt-5.5", "messages": messages, "tools": [tool]}
            answer = through.post(body, "/v1/chat/completions", authorization="Bearer sk-one", x_api_key="")
            assert answer.status_code == 200, answer.text
            said = answer.json()["choices"][0]["message"]
            messages.append(said)
            result: Any = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"]}
        else:
            last = messages[-1]["content"]
            part = {"type": "text", "text": last} if isinstance(last, str) else last[0]
            marked = [*messages[:-1], {"role": "user", "content": [{**part, "cache_control": MARK}]}]
            system = [{"type": "text", "text": "You work. " * 400, "cache_control": MARK}]
            tool = {"name": "read", "input_schema": {"type": "object"}}
            body = {"model": MODEL, "max_tokens": 900, "system": system, "tools": [tool], "messages": marked}
            answer = through.post(body)
            assert answer.status_code == 200, answer.text
            said = answer.json()["content"]
            messages.append({"role": "assistant", "content": said})
            result = {"type": "tool_result", "tool_use_id": said[0]["id"]}
        lines = 2_000 if turn == long_at else 40 + 37 * turn % 90
        result["content"] = "".join(LINE.format(turn, number) for number in range(lines))
        messages.append(result if openai else {"role": "user", "content": [result]})
    (account,) = through.store.accounts()
    total = total_of(account, load_registry())
    assert total.untouched is not None
    assert total.net is not None
    assert total.cost is not None
    summaries = total.summary_cost or 0
    return Worked(
        compacted=[
            (turns, event.because.code, event.mechanisms)
            for turns, event in zip(account.turns_before or (), account.events, strict=True)
            if isinstance(event, Compaction)
        ],
        paid=total.untouched if total.shadow_estimated is not None else total.cost + summaries,
        would=total.untouched - total.net,
        estimated=total.shadow_estimated,
        summaries=summaries,
    )


@pytest.mark.moves_prefix(reason="rent-or-buy compacts")
@pytest.mark.parametrize("openai", [False, True], ids=["anthropic, with marks", "openai"])
def test_it_costs_in_the_shadow_what_it_costs_live(start: Starting, openai: bool) -> None:
    turns = 70
    live = work(start(calls_a_tool, recall=True, summaries="never"), turns, openai=openai)
    shadow = work(start(calls_a_tool, shadow=True, recall=True, summaries="never"), turns, openai=openai)
    never = work(start(calls_a_tool, policy="never"), turns, openai=openai)
    first_summary = next(at for at, each in enumerate(live.compacted) if "summarize" in each[2])
    assert shadow.compacted[: first_summary + 1] == live.compacted[: first_summary + 1]
    assert shadow.paid == never.paid
    # Behind the first summary the two go different ways: the live one is the shorter prompt that was really sent.
    assert shadow.would == pytest.approx(live.paid, rel=0.03)
    assert shadow.estimated == pytest.approx(shadow.paid, rel=0.02)


@pytest.mark.parametrize("openai", [False, True], ids=["anthropic, with marks", "openai"])
def test_what_is_truncated_on_arrival_would_have_been_written_to_the_cache(
    start: Starting, openai: bool
) -> None:
    name = "gpt-5.5" if openai else MODEL
    tokenizer, scale = counter_for(name), rules_for(name).scale
    with Provider(calls_a_tool, count=lambda text: round(tokenizer.count(text) * scale)) as provider:
        through = start(provider=provider, shadow=True, recall=True, summaries="never")
        shadow = work(through, 9, openai=openai, long_at=5)
    assert shadow.compacted == [(6, "too-large-at-the-door", ("shorten",))]
    assert shadow.would < 0.8 * shadow.paid
    assert shadow.estimated == pytest.approx(shadow.paid, rel=0.02)


def test_recall_tools_would_stand_at_the_front_and_be_read_with_it(start: Starting) -> None:
    """So what a call writes to the cache behind them is what the client's own call writes."""
    through = start(calls_a_tool, shadow=True, recall=True, summaries="never")
    system = [{"type": "text", "text": "You work. " * 3_000, "cache_control": MARK}]
    messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
    reported: list[Any] = []
    tool = {"name": "read", "input_schema": {"type": "object"}}
    body = {"model": MODEL, "max_tokens": 900, "system": system, "tools": [tool], "messages": messages}
    for turn in range(8):
        answer = through.post(body).json()
        reported.append(answer["usage"])
        messages.append({"role": "assistant", "content": answer["content"]})
        text = "".join(LINE.format(turn, number) for number in range(90))
        result = {"type": "tool_result", "tool_use_id": answer["content"][0]["id"], "content": text}
        if turn:
            del messages[-2]["content"][0]["cache_control"]
        messages.append({"role": "user", "content": [{**result, "cache_control": MARK}]})
    (account,) = through.store.accounts()
    would = [record.usage for record in account.records if record.usage is not None]
    assert len(would) == len(reported)
    more = would[0].prompt - reported[0]["cache_creation_input_tokens"] - reported[0]["input_tokens"]
    assert more > 50
    for used, own in list(zip(would, reported, strict=True))[1:]:
        assert used.cache_write == own["cache_creation_input_tokens"]
        assert used.cache_read - own["cache_read_input_tokens"] == pytest.approx(more, abs=9)


def test_summaries_count_as_they_would_be_bought_and_no_model_is_asked(start: Starting) -> None:
    through = start(talks, settings=CEILING, **SHADOW)
    talking(through, 30)
    assert len(through.provider.requests) == 30
    (account,) = through.store.accounts()
    summaries = [
        event
        for event in account.events
        if isinstance(event, Compaction) and event.summarizer.endswith(MODEL)
    ]
    assert summaries
    assert summaries[0].summarizer == f"extract in place of {MODEL}"
    assert all(event.cost and event.summary_prompts for event in summaries)
    assert summaries[0].summary_prompts > 5_000
    metrics = httpx2.get(f"{through.url}/metrics").text
    real = sum(record.untouched or 0 for record in account.records) / 1e9
    would = sum(record.cost or 0 for record in account.records) / 1e9
    for name, dollars in (("cost", real), ("shadow_cost", would)):
        found = re.search(rf'^lowwater_{name}_dollars_total{{model="{MODEL}"}} (\S+)$', metrics, re.MULTILINE)
        assert found is not None
        assert float(found[1]) == pytest.approx(dollars, rel=1e-5)
