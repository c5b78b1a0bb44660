"""A session whose provider compacts by itself: asked for as an offer, kept byte for byte, legal ever after (`native`)."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import cost_of
from lowwater.core.formats.usage import decode_anthropic_report
from lowwater.core.view import Summary
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.summarizers.model import AsyncModelSummarizer
from lowwater.testing.invariants import Protected, Watch, check_newest_user, check_nothing_lost, check_pairs
from lowwater.testing.provider import CallTools, CutOff, Fail, Provider, Refuse, Say, Seen
from lowwater.testing.provider.answers import Call
from tests.summarizers.native_conversation import (
    MODEL,
    OPENED,
    SYSTEM,
    TOOLS,
    Talk,
    agent,
    first_block,
    half,
    output,
    summary_of,
    texts_in,
)


@pytest.fixture(autouse=True)
def closing() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().client.close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(script=agent(), default_context=1_000_000, count=half) as running:
        yield running


@pytest.fixture
def talk(provider: Provider) -> Talk:
    talk = Talk(provider)
    talk.ask_all(0, 20)
    return talk


def thinking_in(talk: Talk) -> int:
    return sum(len(item.message.thinking) for item in internals(talk.session).ledger.view.items)


def test_the_block_stands_first_and_stays_byte_for_byte(talk: Talk) -> None:
    whole = list(talk.session.history())
    watch = Watch(Protected(first=3, last=6))
    watch.see(internals(talk.session).ledger, talk.prepared().messages)
    event = talk.session.compress()
    watch.see(internals(talk.session).ledger, internals(talk.session).ledger.view.messages)
    assert event is not None
    assert "native" in event.mechanisms
    assert event.after < event.before / 2
    talk.ask_all(20, 26)
    assert not talk.provider.refusals
    (asked,) = talk.compactions
    assert asked.headers["anthropic-beta"] == "compact-2026-09-04"
    later = talk.calls[40:]
    blocks = [first_block(seen) for seen in later]
    assert len(blocks) == 12
    assert all(block == blocks[0] for block in blocks)
    assert all("compact-2026-09-04" in seen.headers["anthropic-beta"] for seen in later)
    assert list(blocks[0]) == ["type", "content", "signature"]
    assert blocks[0]["content"] == summary_of(asked)
    assert talk.session.history()[: len(whole)] == whole
    check_nothing_lost(internals(talk.session).ledger)
    check_newest_user(internals(talk.session).ledger)


def test_the_request_for_it_is_the_beginning_of_the_conversation_and_read_from_the_cache(talk: Talk) -> None:
    talk.session.compress()
    asked, sent = talk.compactions[0].body, talk.calls[39].body

    def bare(value: Any) -> Any:
        """Without marks: a text that carries one is a block."""
        if isinstance(value, list):
            return [bare(each) for each in value]
        if not isinstance(value, dict):
            return value
        kept = {name: bare(each) for name, each in value.items() if name != "cache_control"}
        text = kept.get("content")
        return (
            kept | {"content": [{"type": "text", "text": text}]}
            if "role" in kept and isinstance(text, str)
            else kept
        )

    count = len(asked["messages"])
    assert 0 < count < len(sent["messages"])
    assert bare(asked["messages"]) == bare(sent["messages"][:count])
    assert (bare(asked["system"]), asked["tools"], asked["thinking"]) == (
        bare(sent["system"]),
        sent["tools"],
        sent["thinking"],
    )
    assert asked["compaction"]["type"] == "summarize"
    assert "Do not call any tool" in asked["compaction"]["instructions"]
    kept = internals(talk.session).ledger.view.items[1:]
    assert kept[0].message.role != asked["messages"][-1]["role"]


def test_its_call_is_billed_as_the_provider_reports_it_apart(talk: Talk) -> None:
    event = talk.session.compress()
    assert event is not None
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [spent_by(talk)]}
    (spent,) = decode_anthropic_report(json.dumps(usage).encode()).others
    assert spent.cache_read > 0.9 * spent.prompt
    model = load_registry().find(MODEL)
    assert event.cost == cost_of(spent, model, talk.clock.now())
    assert f"summaries ${(event.cost or 0) / 1e9:.4f}" in str(talk.session.status())


def spent_by(talk: Talk) -> dict[str, Any]:
    """Ask the provider for the same block once more: it reads what the first one read."""
    seen = talk.compactions[0]
    answer = talk.client.beta.messages.create(
        **{**seen.body, "betas": ["compact-2026-09-04"], "model": MODEL}
    )
    (step,) = answer.model_dump()["usage"]["iterations"]
    return dict(step)


def test_rent_or_buy_buys_it_and_says_so(provider: Provider) -> None:
    talk = Talk(provider, policy="rent-or-buy", context=1_000_000)
    for number in range(120):
        talk.ask(f"question {number}")
        if talk.compactions:
            break
    told = next(each for each in talk.told if "signed block" in each)
    assert "On sale: the provider's own compaction of the older messages" in told
    assert "due now" in told
    (event,) = [each for each in talk.sink.compactions if "native" in each.mechanisms]
    assert event.mechanisms == ("native",)
    assert event.because.code == "rent-paid"
    assert event.summarizer == MODEL
    assert event.cost is not None
    assert event.cost > 0
    talk.ask("one more")
    assert not provider.refusals


def test_what_it_stands_for_can_be_recalled(talk: Talk) -> None:
    talk.session.compress()
    found = talk.session.recall("src/question_3/part_77.py")
    assert any("src/question_3/part_77.py" in each.text for each in found)
    first = internals(talk.session).ledger.view.items[0]
    assert isinstance(first, Summary)
    assert first.sources[0].first == 1
    assert talk.session.diff("before-compaction-1")


def test_it_is_undone_like_any_other(talk: Talk) -> None:
    talk.session.compress()
    talk.ask_all(20, 21)
    talk.session.rewind("before-compaction-1")
    talk.ask("And now?")
    assert not talk.provider.refusals
    assert "compaction" not in json.dumps(talk.calls[-1].body["messages"])


def test_compacting_again_leaves_one_block(talk: Talk) -> None:
    talk.session.compress()
    talk.ask_all(20, 36)
    event = talk.session.compress()
    assert event is not None
    assert "native" in event.mechanisms
    talk.ask("And now?")
    assert not talk.provider.refusals
    first, second = talk.compactions
    assert first_block(second)["content"] == summary_of(first), "what it stood for goes into the next"
    assert json.dumps(talk.calls[-1].body["messages"]).count('"type": "compaction"') == 1


OF_NO_USE = [
    pytest.param(lambda _: CutOff("Half of it"), "failed", id="cut off"),
    pytest.param(lambda _: CallTools((Call("bash"),)), "failed", id="a call"),
    pytest.param(lambda _: Refuse(), "refused", id="refused"),
    pytest.param(lambda _: Say(""), "failed", id="empty"),
    pytest.param(lambda _: Say("Things were done."), "too_short", id="a stump"),
    pytest.param(lambda seen: Say(summary_of(seen) * 40), "not_smaller", id="too large"),
    pytest.param(lambda seen: Say(summary_of(seen) * 20), "too_long", id="too long"),
    pytest.param(
        lambda seen: Say(f"{summary_of(seen)}\n- key sk-ant-api03-{'Ab1' * 30}-QQ"),
        "holds_secrets",
        id="a secret",
    ),
    pytest.param(
        lambda _: Fail(400, "invalid_request_error", "compaction: not now"), "refused", id="an error"
    ),
]


@pytest.mark.parametrize(("answer", "code"), OF_NO_USE)
def test_a_block_of_no_use_is_refused_and_a_summary_is_written_instead(answer: Any, code: str) -> None:
    with Provider(script=agent(answer), default_context=1_000_000, count=half) as provider:
        talk = Talk(provider)
        talk.ask_all(0, 20)
        event = talk.session.compress()
        assert event is not None
        assert "native" not in event.mechanisms
        assert "summarize" in event.mechanisms
        assert event.rejected[0].code == code
        assert event.summarizer == MODEL, "the same model writes it as text"
        assert code in talk.session.explain()
        assert event.cost is not None, "whatever was billed is known"
        talk.ask_all(20, 28)
        talk.session.compress()
        assert len(talk.compactions) == 1, "for an hour it is not asked again"
        talk.clock.advance(4_000)
        talk.ask_all(28, 40)
        is_capped = internals(talk.session).shared.state.totals.has_spent_summary_share
        assert is_capped == (code in {"not_smaller", "too_long"}), "long answers used the share up"
        talk.session.compress()
        assert len(talk.compactions) == (1 if is_capped else 2)
        assert not provider.refusals


def test_where_the_setting_is_off_nobody_is_asked_for_a_block(provider: Provider) -> None:
    talk = Talk(provider, native=False)
    talk.ask_all(0, 20)
    event = talk.session.compress()
    assert event is not None
    assert "summarize" in event.mechanisms
    assert not talk.compactions
    assert talk.prepared(messages=None).betas == ()


def test_in_a_tool_loop_the_users_task_stands_behind_the_block() -> None:
    with Provider(script=agent(rounds=40), default_context=1_000_000, count=half) as looping:
        talk = Talk(looping)
        talk.session.append({"role": "user", "content": "question 1"})
        for _ in range(30):
            answer = talk.call()
            call = next(block for block in answer.content if block.type == "tool_use")
            result = {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": f"{call.id}\n{output(call.id)}",
            }
            talk.session.append({"role": "user", "content": [result]})
        event = talk.session.compress()
        assert event is not None
        assert "native" in event.mechanisms
        items = internals(talk.session).ledger.view.items
        assert items[1].message.text == "question 1"
        check_newest_user(internals(talk.session).ledger)
        talk.call()
        assert not looping.refusals, "what was thought behind the task said twice was taken out"


@pytest.mark.parametrize(
    "model", ["claude-opus-5-5", "claude-opus-4-8"], ids=["a model that binds thinking", "one that does not"]
)
def test_thinking_in_the_tail_stays_behind_a_block(model: str, provider: Provider) -> None:
    talk = Talk(provider, model=model)
    talk.ask_all(0, 20)
    tail = [item.message for item in internals(talk.session).ledger.view.items[-12:]]
    talk.session.compress()
    assert talk.compactions
    now = [item.message for item in internals(talk.session).ledger.view.items[-12:]]
    assert all(new is old for new, old in zip(now, tail, strict=True))
    assert sum(len(message.thinking) for message in now) > 3
    answer = talk.ask("And now?")
    assert not provider.refusals
    assert not answer.input_transformations


@pytest.mark.parametrize(
    ("bound", "thinking"),
    [
        pytest.param("drop", {"type": "adaptive"}, id="by the settings"),
        pytest.param(
            "strip",
            {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
            id="by the request",
        ),
    ],
)
def test_without_a_block_the_provider_may_drop_it(bound: str, thinking: Any, provider: Provider) -> None:
    talk = Talk(provider, native=False, bound=bound, thinking=thinking)
    talk.ask_all(0, 20)
    before = thinking_in(talk)
    talk.session.compress()
    assert 0 < thinking_in(talk) < before
    answer = talk.ask("And now?")
    assert not provider.refusals
    assert "thinking-binding-controls-2026-08-01" in provider.requests[-1].headers["anthropic-beta"]
    dropped = {each.reason for each in answer.input_transformations}
    assert dropped == {"prefix_binding_mismatch"}
    talk.thinking = {"type": "disabled"}
    talk.ask("And without?")
    assert not provider.refusals
    assert thinking_in(talk) < before / 4, "a request that cannot ask for it goes without"


def test_without_either_it_is_stripped(provider: Provider) -> None:
    talk = Talk(provider, native=False, thinking={"type": "enabled", "budget_tokens": 1_024}, bound="drop")
    talk.ask_all(0, 20)
    talk.session.compress()
    head = [item.message for item in internals(talk.session).ledger.view.items[:3]]
    assert thinking_in(talk) == sum(len(message.thinking) for message in head)
    answer = talk.ask("And now?")
    assert not provider.refusals
    assert not answer.input_transformations


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "gpt-5.5"])
def test_a_model_that_cannot_read_the_block_is_told_what_it_says(talk: Talk, model: str) -> None:
    talk.session.compress()
    said = summary_of(talk.compactions[0])
    talk.session.use(model)
    talk.session.append({"role": "user", "content": "And now?"})
    request = talk.session.prepare(system=SYSTEM)
    assert request.betas == ()
    first = request.messages[0]
    assert said in first.text
    assert first.role == "user"
    assert b"compaction" not in json.dumps(request.as_anthropic()["messages"]).encode()
    check_pairs(request.messages)
    check_nothing_lost(internals(talk.session).ledger)


def test_a_switch_between_models_that_read_it_keeps_it(talk: Talk) -> None:
    talk.session.compress()
    talk.session.use("claude-sonnet-5-5")
    talk.model = "claude-sonnet-5-5"
    talk.ask("And now?")
    assert not talk.provider.refusals
    assert talk.calls[-1].body["messages"][0]["content"][0]["type"] == "compaction"


def test_another_process_goes_on_with_it_and_one_without_the_setting_in_words(
    provider: Provider, tmp_path: Any
) -> None:
    store = f"sqlite:///{tmp_path}/sessions.db"
    talk = Talk(provider, store=store)
    talk.ask_all(0, 20)
    talk.session.compress()
    talk.ask("And now?")
    block = first_block(provider.requests[-1])
    again = Talk(provider, store=store)
    again.ask("And then?")
    assert first_block(provider.requests[-1]) == block
    without = Talk(provider, store=store, native=False)
    answer = without.ask("And without?")
    assert not provider.refusals
    assert answer.stop_reason == "end_turn"
    assert block["content"] in texts_in(provider.requests[-1].body["messages"][0])[0]


def test_a_model_that_writes_a_summary_for_less_is_asked_instead(provider: Provider) -> None:
    talk = Talk(provider, beside=("claude-haiku-5-5",))
    talk.ask_all(0, 20)
    talk.session.compress()
    assert not talk.compactions
    assert provider.requests[40].body["model"] == "claude-haiku-5-5"


def test_over_a_cold_cache_a_transcript_costs_less_than_the_whole_request(talk: Talk) -> None:
    talk.clock.advance(3_600)
    event = talk.session.compress()
    assert event is not None
    assert "summarize" in event.mechanisms
    assert not talk.compactions


def test_it_is_awaited_too(provider: Provider) -> None:
    asyncio.run(awaited(provider))


async def awaited(provider: Provider) -> None:
    talk = Talk(provider)
    summarizer = AsyncModelSummarizer(
        model=MODEL, base_url=provider.anthropic_base_url, api_key="k", format="anthropic"
    )
    talk.session = Lowwater(
        model=MODEL, summarizer=summarizer, settings=talk.settings, policy="never", clock=talk.clock
    ).session("awaited")
    talk.session.learn_context_length(150_000)
    for number in range(12):
        results: list[Any] = [f"question {number}"]
        while results:
            talk.session.append([{"role": "user", "content": result} for result in results])
            request = await talk.session.aprepare(system=SYSTEM, tools=TOOLS)
            answer = talk.client.beta.messages.create(model=MODEL, max_tokens=900, **request.as_anthropic())
            await talk.session.arecord(answer)
            results = [
                [{"type": "tool_result", "tool_use_id": block.id, "content": output(f"question {number}")}]
                for block in answer.content
                if block.type == "tool_use"
            ]
    event = await talk.session.acompress()
    assert event is not None
    assert "native" in event.mechanisms


def test_nothing_of_a_conversation_is_told_when_the_provider_refuses(talk: Talk) -> None:
    def refusing(seen: Seen) -> Fail:
        return Fail(400, "invalid_request_error", f"no: {seen.body['messages'][0]['content']}")

    with Provider(script=agent(refusing), default_context=1_000_000, count=half) as provider:
        talk = Talk(provider)
        talk.ask_all(0, 20)
        event = talk.session.compress()
    assert event is not None
    assert "question" not in event.rejected[0].error
