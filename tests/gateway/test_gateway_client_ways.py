"""Ways of real clients that the gateway has to know, each by itself; `test_gateway_clients.py` runs the clients."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from lowwater.gateway.clients import OPENROUTER, started, upstream_in
from lowwater.gateway.upstream import url_of
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Answer, Call, CallTools, Fail, Say, Seen
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, Through, calls_a_tool
from tests.gateway.test_gateway_compaction import SUMMARY

QUESTION = "Your task is to create a detailed summary of the conversation so far."
REMINDER = {"role": "system", "content": "The task tools have not been used recently."}


def asked(through: Through, messages: list[Any], **headers: str) -> list[Any]:
    """Send a list as Claude Code does, and return it with the answer."""
    headers |= {"anthropic_beta": "mid-conversation-system-2026-04-07"}
    body = {
        "model": "claude-opus-4-8",
        "max_tokens": 900,
        "system": "You work.",
        "tools": ANTHROPIC_TOOLS,
        "messages": messages,
    }
    answer = through.post(body, **headers)
    assert answer.status_code == 200, answer.text
    return [*messages, {"role": "assistant", "content": answer.json()["content"]}]


def result_of(messages: list[Any], said: str = "nothing there") -> dict[str, Any]:
    use = next(block for block in messages[-1]["content"] if block["type"] == "tool_use")
    return {"type": "tool_result", "tool_use_id": use["id"], "content": said}


def summarises(seen: Seen) -> Answer:
    return Say(text=SUMMARY) if QUESTION.encode() in seen.raw else calls_a_tool(seen)


@pytest.mark.parametrize("behind", [[], [REMINDER]], ids=["alone", "with a reminder behind it"])
def test_a_question_for_a_summary_beside_a_result_is_no_part_of_the_conversation(
    start: Starting, behind: list[Any]
) -> None:
    through = start(summarises, joins_by_summary=True)
    messages = asked(through, [{"role": "user", "content": "Find the defect."}])
    result = result_of(messages)
    last = {"role": "user", "content": [result, {"type": "text", "text": QUESTION}]}
    asked(through, [*messages, last, *behind])
    summary = SUMMARY.partition("<summary>")[2].removesuffix("</summary>")
    asked(through, [{"role": "user", "content": f"This session is being continued.\n{summary}"}])
    (session,) = through.store.sessions()
    # The first question, its answer and the result; then the summary and its answer. What wrote it is billed.
    assert (session.turns, session.messages) == (3, 5)


def test_a_conversation_goes_on_after_a_summary_that_its_client_did_not_use(start: Starting) -> None:
    through = start(summarises)
    messages = asked(through, [{"role": "user", "content": "Find the defect."}])
    result = result_of(messages)
    asked(through, [*messages, {"role": "user", "content": [result, {"type": "text", "text": QUESTION}]}])
    asked(through, [*messages, {"role": "user", "content": [result]}])
    (session,) = through.store.sessions()
    assert (session.turns, session.messages) == (3, 4)


def test_a_summary_may_stand_behind_what_the_user_said(start: Starting) -> None:
    through = start(
        lambda seen: Say(text=SUMMARY) if b"CHECKPOINT COMPACTION" in seen.raw else Say(text="Well.")
    )
    items: list[Any] = [{"type": "message", "role": "user", "content": f"Question {n}"} for n in range(1)]
    checkpoint = {
        "type": "message",
        "role": "user",
        "content": "You are performing a CONTEXT CHECKPOINT COMPACTION.",
    }
    brought = [{"type": "message", "role": "developer", "content": f"Rule {n}"} for n in range(14)]
    summary = {"type": "message", "role": "user", "content": f"Another model has summed up:\n{SUMMARY}"}
    for listed in (items, [*items, checkpoint], [*brought, *items, summary]):
        answer = through.post(
            {"model": "gpt-5.5", "input": listed}, "/v1/responses", authorization="Bearer k", thread_id="t"
        )
        assert answer.status_code == 200, answer.text
        if listed is items:
            items = [*items, *answer.json()["output"]]
    (session,) = through.store.sessions()
    assert session.turns == 3


@pytest.mark.parametrize(
    ("name", "key", "sessions"),
    [("s", "sk-one", [2, 1]), ("other", "sk-one", [1, 1, 1]), ("s", "sk-two", [1, 1, 1])],
    ids=["of the same name", "of another name", "of another tenant"],
)
def test_a_summary_asked_for_apart_belongs_to_the_conversation(
    start: Starting, name: str, key: str, sessions: list[int]
) -> None:
    through = start(lambda seen: Say(text=SUMMARY if b"<conversation>" in seen.raw else "Well."))
    body = {"model": MODEL, "max_tokens": 900, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    through.post(body | {"messages": [{"role": "user", "content": "Find the defect."}]}, x_session_id="s")
    inside = "Here is the conversation so far:\n\n<conversation>\n[User]: Find the defect.\n</conversation>\nSum up."
    apart = {"model": MODEL, "max_tokens": 900, "messages": [{"role": "user", "content": inside}]}
    through.post(apart, x_session_id=name, x_api_key=key)
    shorter = [
        {"role": "user", "content": "What did we do so far?"},
        {"role": "assistant", "content": SUMMARY},
        {"role": "user", "content": "Go on."},
    ]
    through.post(body | {"messages": shorter}, x_session_id="s")
    assert sorted((session.turns for session in through.store.sessions()), reverse=True) == sessions


@pytest.mark.parametrize("key", ["sk-one", "sk-two"], ids=["of the same tenant", "of another"])
def test_a_client_that_compacts_the_middle_and_tells_no_name_goes_on_in_its_session(
    start: Starting, key: str
) -> None:
    through = start(
        lambda seen: Say(text=SUMMARY) if b"summarization agent" in seen.raw else calls_a_tool(seen),
        joins_by_summary=True,
    )
    messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
    for _ in range(5):
        messages = asked(through, messages)
        messages.append({"role": "user", "content": [result_of(messages)]})
    inside = "You are a summarization agent creating a context checkpoint. Sum up: …"
    apart = {"model": MODEL, "max_tokens": 900, "messages": [{"role": "user", "content": inside}]}
    through.post(apart, x_api_key=key)
    between = {"role": "user", "content": [*messages[2]["content"], {"type": "text", "text": SUMMARY}]}
    asked(through, [*messages[:2], between, *messages[-2:]])
    turns = sorted((session.turns for session in through.store.sessions()), reverse=True)
    assert turns == ([6, 1] if key == "sk-one" else [5, 1, 1])


def test_sub_agents_that_are_told_the_same_are_told_apart(start: Starting) -> None:
    through = start(lambda _: Say(text="always the same"))
    for agent in ("", "a1", "a2"):
        messages: list[Any] = [{"role": "user", "content": "Look around."}]
        for _ in range(3):
            messages = asked(through, messages, x_claude_code_session_id="s", x_claude_code_agent_id=agent)
            messages.append({"role": "user", "content": "more"})
    assert [session.turns for session in through.store.sessions()] == [3, 3, 3]


def test_threads_of_one_session_are_told_apart(start: Starting) -> None:
    through = start(lambda _: Say(text="always the same"))
    for thread in ("t1", "t2"):
        listed: list[Any] = [{"role": "user", "content": "Look around."}]
        for _ in range(3):
            body = {"model": "gpt-5.5", "input": listed}
            answer = through.post(
                body, "/v1/responses", authorization="Bearer k", session_id="s", thread_id=thread
            )
            listed = [*listed, *answer.json()["output"], {"role": "user", "content": "more"}]
    assert [session.turns for session in through.store.sessions()] == [3, 3]


def test_a_billing_line_in_the_system_prompt_makes_no_other_agent(start: Starting) -> None:
    through = start(lambda _: Say(text="always the same"))
    messages: list[Any] = [{"role": "user", "content": "Look around."}]
    for number in ("beb", "f9d"):
        system = [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.197.{number};"},
            {"type": "text", "text": "You work."},
        ]
        answer = through.post(
            {"model": MODEL, "max_tokens": 9, "system": system, "messages": messages}
        ).json()
        messages += [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": "more"},
        ]
    (session,) = through.store.sessions()
    assert session.turns == 2


@pytest.mark.parametrize("hints", [{}, {"x_session_id": "a"}], ids=["tells nothing", "tells its session"])
def test_a_first_request_that_is_tried_again_is_one_session(start: Starting, hints: dict[str, str]) -> None:
    busy = Fail(status=429, type="rate_limit_error", message="slow down")
    through = start([busy, busy, Say(text="Here."), Say(text="And here.")])
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    statuses = [through.post(body, **hints).status_code for _ in range(3)]
    assert statuses == [429, 429, 200]
    (session,) = through.store.sessions()
    assert (session.turns, session.messages) == (1, 2)
    if not hints:
        through.post(body)
        assert len(through.store.sessions()) == 2, "an answered one that comes again is begun anew"


def test_a_message_that_was_refused_may_be_said_otherwise(start: Starting) -> None:
    answers: list[Answer] = [
        Say(text="one"),
        Fail(status=500, type="api_error", message="no"),
        Say(text="two"),
    ]
    through = start(answers)
    messages = asked(through, [{"role": "user", "content": "hello"}])
    body = {"model": MODEL, "max_tokens": 900, "system": "You work.", "tools": ANTHROPIC_TOOLS}
    through.post(body | {"messages": [*messages, {"role": "user", "content": "first try"}]})
    asked(through, [*messages, {"role": "user", "content": "second try"}])
    (session,) = through.store.sessions()
    assert session.turns == 2


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_whether_anybody_is_there_is_answered_here(start: Starting, method: str) -> None:
    through = start()
    assert httpx2.request(method, through.url + "/").status_code == 200
    assert through.provider.requests == ()


@pytest.mark.parametrize(
    ("base", "target", "openai", "expected"),
    [
        ("https://a.test", "/v1/messages", False, "https://a.test/v1/messages"),
        ("https://a.test/anthropic", "/v1/messages?beta=true", False, "https://a.test/anthropic/v1/messages?beta=true"),
        ("https://o.test", "/v1/responses", True, "https://o.test/v1/responses"),
        ("https://o.test/v1/", "/v1/responses", True, "https://o.test/v1/responses"),
        ("https://o.test/api/v4", "/v1/chat/completions", True, "https://o.test/api/v4/chat/completions"),
        ("https://o.test/both", "/v1/messages", True, "https://o.test/both/v1/messages"),
        ("https://o.test/v1", "/api/tags", True, "https://o.test/v1/api/tags"),
    ],
)  # fmt: skip
def test_a_path_is_put_behind_a_base_url_as_clients_of_it_do(
    base: str, target: str, openai: bool, expected: str
) -> None:
    assert url_of(base, target, named_by_base=openai) == expected


@pytest.mark.parametrize(
    ("settings", "env", "expected"),
    [
        ("model: {provider: custom, base_url: http://mine/v1}", {}, "http://mine/v1"),
        ("model: {provider: custom, base_url: http://mine/v1}", {"CUSTOM_BASE_URL": "http://now/v1"}, "http://now/v1"),
        ("model: gpt-5.5", {}, OPENROUTER),
        ("model: {provider: openrouter}", {"OPENROUTER_BASE_URL": "http://or/v1"}, "http://or/v1"),
        ("model: {provider: openai-api}", {"OPENAI_BASE_URL": "http://local/v1"}, "http://local/v1"),
        ("{ not yaml", {}, OPENROUTER),
        (None, {}, OPENROUTER),
    ],
)  # fmt: skip
def test_the_gateway_goes_where_hermes_would_have_gone(
    settings: str | None, env: dict[str, str], expected: str, tmp_path: Path
) -> None:
    if settings is not None:
        (tmp_path / "config.yaml").write_text(settings)
    assert upstream_in(env | {"HERMES_HOME": str(tmp_path)}, "hermes").openai == expected


def test_hermes_is_told_by_the_variables_it_reads() -> None:
    told = started(["hermes", "chat"], "http://g", {}).env
    assert {told[name] for name in ("CUSTOM_BASE_URL", "OPENROUTER_BASE_URL", "OPENAI_BASE_URL")} == {
        "http://g/v1"
    }
    assert told["ANTHROPIC_BASE_URL"] == "http://g"


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_tools_that_come_as_an_item_stay_at_the_head_of_the_list(start: Starting) -> None:
    calls = (Call(name="exec", arguments={"input": "text(1)"}),)
    ceiling = CompressionSettings(max_view_tokens=9_000, protect_last_n=4)
    through = start(lambda _: CallTools(calls=calls), settings=Settings(compression=ceiling))
    space = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    listed: list[Any] = [
        {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [space]},
        {"type": "message", "role": "user", "content": "Find the defect."},
    ]
    for turn in range(20):
        body = {"model": "gpt-5.5", "input": listed, "store": False}
        answer = through.post(body, "/v1/responses", authorization="Bearer k", thread_id="t")
        assert answer.status_code == 200, answer.text
        (call,) = answer.json()["output"]
        assert call["type"] == "custom_tool_call"
        said = f"line {turn} of it\n" * 300
        listed += [call, {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": said}]
    (session,) = through.store.sessions()
    assert session.compactions >= 1
    assert all(seen.body["input"][0] == listed[0] for seen in through.provider.requests)
    assert through.provider.refusals == ()
