"""Specification F: prompt caching by marks, `system_and_3`."""

from collections.abc import Callable
from typing import Any

import pytest

from lowwater import Session
from lowwater.core.models.model import ROUTERS
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.legality import refusal_of
from lowwater.testing.views import Script

TOOLS = [{"name": "terminal", "input_schema": {"type": "object"}}]
FIVE_MINUTES, AN_HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


def marks_in(value: Any) -> list[Any]:
    """Return every mark in a request, in order."""
    if isinstance(value, list):
        return [mark for inner in value for mark in marks_in(inner)]
    if not isinstance(value, dict):
        return []
    own = [value["cache_control"]] if "cache_control" in value else []
    return own + [mark for key, inner in value.items() if key != "cache_control" for mark in marks_in(inner)]


@pytest.fixture
def sent(opened: Callable[..., Session]) -> Any:
    """What leaves for the provider: the body of a request for a conversation."""

    def body(
        script: Script, *, model: str = "claude-haiku-4-5", ttl: Any = "5m", **options: Any
    ) -> dict[str, Any]:
        settings = Settings(model=ModelSettings(cache_ttl=ttl))
        session = opened(script, policy="runway", model=model, settings=settings)
        request = session.prepare(**options)
        return request.as_openai() if "/" in model or "qwen" in model else request.as_anthropic()

    return body


def short(format: str = "anthropic") -> Script:
    return Script(format).user("one").says("two").user("three").says("four").user("five")  # type: ignore[arg-type]


def test_f_four_marks_the_system_prompt_and_the_last_three_other_messages(sent) -> None:
    body = sent(short(), system="Be brief.")
    assert marks_in(body["system"]) == [FIVE_MINUTES]
    assert [len(marks_in(message)) for message in body["messages"]] == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("turns", [1, 5])
def test_f_there_are_never_more_than_four(sent, turns) -> None:
    script = Script("anthropic").user("go")
    for turn in range(turns):
        script.calls("terminal", {"command": f"ls {turn}"}, "ok").says("Listed.").user(f"again {turn}")
    body = sent(script, system="Be brief.", tools=TOOLS)
    assert len(marks_in(body)) == 4
    assert refusal_of({"model": "claude-haiku-4-5", "max_tokens": 9, **body}, "anthropic") is None


def test_f_string_content_becomes_a_text_block_with_the_mark(sent) -> None:
    body = sent(short(), system="Be brief.")
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": FIVE_MINUTES}]
    assert body["messages"][-1]["content"] == [
        {"type": "text", "text": "five", "cache_control": FIVE_MINUTES}
    ]


def test_f_list_content_gets_it_on_its_last_block(opened) -> None:
    session = opened(policy="runway", model="claude-haiku-4-5")
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    body = session.prepare([{"role": "user", "content": blocks}]).as_anthropic()
    assert body["messages"][0]["content"] == [blocks[0], {**blocks[1], "cache_control": AN_HOUR}]


ROUTED = {
    "openrouter": "openrouter/anthropic/claude-sonnet-4-5",
    "litellm": "litellm_proxy/anthropic/claude-sonnet-4-5",
    "alibaba": "qwen3.8-max",
    "unknown": "databricks/claude-sonnet-4-5",
}
"""A model behind each router whose contract is recorded."""


def test_every_recorded_contract_is_tried_and_says_where_it_was_read() -> None:
    assert set(ROUTED) == {router.name for router in ROUTERS}
    assert all(source.startswith("https://") for router in ROUTERS for source in router.sources)
    assert all(router.sources for router in ROUTERS)


@pytest.mark.parametrize("model", ROUTED.values(), ids=ROUTED)
@pytest.mark.parametrize("turns", [1, 12])
def test_every_chat_request_keeps_to_the_contract_of_its_router(sent, model, turns) -> None:
    script = Script("openai_chat").user("go")
    for turn in range(turns):
        script.calls("terminal", {"command": f"ls {turn}"}, "" if turn % 5 == 2 else f"out {turn} " * 40)
    body = sent(script, model=model, system="Be brief.")
    assert refusal_of({"model": model, **body}, "openai_chat") is None
    marked = [at for at, message in enumerate(body["messages"]) if marks_in(message)]
    last = len(body["messages"]) - 1
    if model in (ROUTED["openrouter"], ROUTED["alibaba"]) and turns == 12:
        assert marked == [0, last - 4, last - 2, last], (
            "what the tools said is cached, not only the system prompt"
        )
        assert isinstance(body["messages"][-1]["content"], list)
    if model in (ROUTED["litellm"], ROUTED["unknown"]):
        assert marked == [0, 1], "no router but those is known to take a mark on a tool message"


@pytest.mark.parametrize(
    ("model", "message", "rule"),
    [
        ("openrouter", {"content": "x", "cache_control": FIVE_MINUTES}, "mark_not_on_message"),
        (
            "litellm",
            {"content": [{"type": "text", "text": "x", "cache_control": FIVE_MINUTES}]},
            "mark_where_router_looks",
        ),
        (
            "unknown",
            {"content": [{"type": "text", "text": "x", "cache_control": FIVE_MINUTES}]},
            "mark_where_router_looks",
        ),
        (
            "openrouter",
            {"content": [{"type": "text", "text": "", "cache_control": FIVE_MINUTES}]},
            "mark_on_text",
        ),
        (
            "openrouter",
            {
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:"}, "cache_control": FIVE_MINUTES}
                ]
            },
            "mark_on_text",
        ),
        (
            "openrouter",
            {"content": [{"type": "text", "text": "x", "cache_control": FIVE_MINUTES}] * 5},
            "at_most_four_chat_marks",
        ),
    ],
    ids=["on the message", "LiteLLM copies it", "who knows", "empty", "a picture", "five"],
)
def test_the_provider_refuses_what_a_router_does_not_take(model, message, rule) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", **message},
    ]
    refusal = refusal_of({"model": ROUTED[model], "messages": messages}, "openai_chat")
    assert refusal is not None
    assert refusal.rule == rule


def test_f_the_anthropic_encoder_puts_it_on_the_tool_result_block(sent) -> None:
    script = Script().system("Be brief.").user("go").calls("terminal", {"command": "ls"}, "a.py")
    body = sent(script, tools=TOOLS)
    (block,) = body["messages"][-1]["content"]
    assert (block["type"], block["cache_control"]) == ("tool_result", FIVE_MINUTES)
    assert "cache_control" not in body["messages"][-1]


def test_f_marks_are_put_on_a_copy(opened, told) -> None:
    messages = told(short())
    session = opened(policy="runway", model="claude-haiku-4-5")
    assert marks_in(session.prepare(messages, system="Be brief.").as_anthropic())
    assert marks_in([messages, session.view(), session.history()]) == []


@pytest.mark.parametrize(("ttl", "mark"), [("5m", FIVE_MINUTES), ("1h", AN_HOUR)])
def test_f_they_live_for_five_minutes_or_an_hour(sent, ttl, mark) -> None:
    assert marks_in(sent(short(), system="Be brief.", ttl=ttl)) == [mark] * 4


@pytest.mark.parametrize("model", ["claude-opus-5-5", "openrouter/anthropic/claude-opus-5-5", "qwen3.8-max"])
def test_f_on_by_itself_for_claude_natively_through_openrouter_and_for_others_with_marks(sent, model) -> None:
    script = short("openai_chat") if "/" in model or "qwen" in model else short()
    assert len(marks_in(sent(script, model=model, system="Be brief."))) == 4


@pytest.mark.parametrize("model", ["gpt-4o", "deepseek-chat", "model-nobody-knows"])
def test_f_off_where_the_provider_takes_no_marks(opened, model) -> None:
    request = opened(short("openai_chat"), policy="runway", model=model).prepare(system="Be brief.")
    assert marks_in(request.as_openai()) == []


@pytest.mark.parametrize(
    ("model", "ttl", "said"),
    [
        ("claude-opus-5-5", "5m", "prompt caching: on, 5m"),
        ("claude-opus-5-5", "1h", "prompt caching: on, 1h"),
        ("gpt-4o", "5m", "prompt caching: automatic"),
    ],
)
def test_f_the_status_says_so(opened, model, ttl, said) -> None:
    settings = Settings(model=ModelSettings(cache_ttl=ttl))
    assert said in str(opened(policy="runway", model=model, settings=settings).status())


def test_f_after_a_compaction_the_marks_are_four_and_the_request_legal(opened, loop) -> None:
    session = opened(
        loop(40, script=Script("anthropic").user("Go.")), policy="threshold", model="claude-haiku-4-5"
    )
    session.compress()
    body = session.prepare(system="Be brief.", tools=TOOLS).as_anthropic()
    assert len(marks_in(body)) == 4
    assert refusal_of({"model": "claude-haiku-4-5", "max_tokens": 9, **body}, "anthropic") is None


# Beyond that


def test_f_beyond_that_there_is_a_mark_at_the_compaction_edge(opened, loop) -> None:
    session = opened(
        loop(40, script=Script("anthropic").user("Go.")), policy="threshold", model="claude-haiku-4-5"
    )
    session.compress()
    messages = session.prepare(system="Be brief.", tools=TOOLS).as_anthropic()["messages"]
    edge = next(at for at, m in enumerate(messages) if "summary of earlier turns" in str(m["content"]))
    assert any(marks_in(message) for message in messages[edge - 1 : edge + 2])


def test_f_beyond_that_there_is_a_mark_on_tools(sent) -> None:
    assert marks_in(sent(short(), tools=TOOLS)["tools"]) == [FIVE_MINUTES]


def test_f_beyond_that_the_lookback_of_20_blocks_is_respected(opened, told) -> None:
    session = opened(Script("anthropic").user("go"), policy="runway", model="claude-haiku-4-5")
    calls = [("terminal", {"command": f"ls {number}"}) for number in range(30)]
    places = []
    for more in (None, Script("anthropic").asks(*calls).says("Listed.").user("And?")):
        session.append(told(more) if more else [])
        messages = session.prepare(system="Be brief.", tools=TOOLS).as_anthropic()["messages"]
        blocks = [
            block for m in messages for block in ([m] if isinstance(m["content"], str) else m["content"])
        ]
        places.append([at for at, block in enumerate(blocks) if "cache_control" in block])
    known = places[0][-1]
    assert any(known <= at < known + 20 for at in places[1])


def test_f_beyond_that_auto_picks_an_hour_where_calls_are_ten_minutes_apart(opened) -> None:
    clock, settings = ScriptedClock(0.0), Settings(model=ModelSettings(cache_ttl="auto"))
    session = opened(policy="runway", model="claude-haiku-4-5", settings=settings, clock=clock)
    for turn in range(30):
        session.append({"role": "user", "content": f"go {turn}"})
        body = session.prepare(system="Be brief. " * 5_000).as_anthropic()
        usage = {"input_tokens": 20_000 + turn, "output_tokens": 3}
        content = [{"type": "text", "text": "ok"}]
        session.record({"type": "message", "role": "assistant", "content": content, "usage": usage})
        clock.advance(600.0)
    assert marks_in(body)[-1] == AN_HOUR
