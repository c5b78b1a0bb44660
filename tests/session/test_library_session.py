"""The library as its user sees it: what goes in, what comes out, who is told."""

import json
import logging
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from lowwater.core.decisions import Keep
from lowwater.errors import BadInput, BadSetting, IllegalView, MalformedMessage
from lowwater.observe.sinks import CallbackSink, MemorySink
from lowwater.protocols import Sink
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import RecordingSink, ScriptedClock, ScriptedSummarizer, fail, write
from tests.generated import generate_session

SESSION = generate_session("coding", seed=91, target_tokens=70_000)
CHAT: list[Any] = [json.loads(raw) for raw in SESSION.as_openai_chat()[:-1]]
SECRET = "sk-live-0123456789abcdef"


def answer(text: str, *, prompt: int = 100, **usage: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    counted = {"input_tokens": prompt, "output_tokens": 3, **usage}
    return {"id": "m", "type": "message", "role": "assistant", "content": content, "usage": counted}


def test_messages_are_appended_or_given_as_the_whole_list() -> None:
    lowwater = Lowwater(model="claude-haiku-4-5")
    appending, listing = lowwater.session("appending"), lowwater.session("listing")
    messages = [{"role": "user", "content": "Hello."}]
    appending.append(messages)
    one, other = appending.prepare(system="Hi."), listing.prepare(messages, system="Hi.")
    assert one.as_anthropic() == other.as_anthropic()
    for session in (appending, listing):
        session.record(answer("Hello yourself."))
    more = [{"role": "user", "content": "And now?"}]
    appending.append(more)
    messages += [{"role": "assistant", "content": "Hello yourself."}, *more]
    assert appending.prepare().as_anthropic() == listing.prepare(messages).as_anthropic()
    assert len(listing.history()) == 3, "what was recorded is recognised in the client's list"


@pytest.mark.parametrize(
    ("model", "variable", "options", "asked"),
    [
        ("claude-opus-4-5", "ANTHROPIC_API_KEY", {}, ("claude-opus-4-5", "claude-haiku-4-5")),
        ("gpt-6-sol", "OPENAI_API_KEY", {}, ("gpt-6-sol", "gpt-5-mini")),
        ("claude-opus-4-5", "OPENAI_API_KEY", {}, ()),
        ("claude-opus-4-5", "ANTHROPIC_API_KEY", {"base_url": "https://proxy.example"}, ()),
        ("claude-opus-4-5", "ANTHROPIC_API_KEY", {"summarizer": ()}, ()),
        ("claude-opus-4-5", "ANTHROPIC_API_KEY", {"summarizer": "claude-sonnet-4-5"}, ("claude-sonnet-4-5",)),
        ("deepseek-flash", "ANTHROPIC_API_KEY", {}, ()),
    ],
    ids=[
        "Anthropic",
        "OpenAI",
        "another's key",
        "another URL",
        "declined",
        "named",
        "no key is known for it",
    ],
)
def test_summaries_are_written_on_the_key_of_the_sessions_own_provider(
    model: str,
    variable: str,
    options: dict[str, Any],
    asked: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, "sk-test")
    session = Lowwater(model=model, **options).session()
    found = internals(session).dependencies.summarizers
    assert tuple(getattr(each, "model", "") for each in found) == asked


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"ANTHROPIC_API_KEY": "sk-ant-oat01-abcdef"},
            "ANTHROPIC_API_KEY holds a login, which is not charged",
        ),
        (
            {"ANTHROPIC_API_KEY": "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"},
            "ANTHROPIC_API_KEY holds a login",
        ),
        (
            {"ANTHROPIC_API_KEY": "sk-of-a-proxy", "ANTHROPIC_BASE_URL": "https://proxy.example"},
            "ANTHROPIC_BASE_URL sends calls elsewhere",
        ),
        (
            {"ANTHROPIC_API_KEY": "sk-a", "ANTHROPIC_BASE_URL": "https://evil-anthropic.com"},
            "ANTHROPIC_BASE_URL sends calls elsewhere",
        ),
        ({"ANTHROPIC_API_KEY": "sk-a", "ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}, ""),
    ],
    ids=["a login", "a web token", "a proxy's key", "a host that looks like it", "its own URL"],
)
def test_neither_a_login_is_charged_nor_is_a_key_sent_where_it_does_not_belong(
    environment: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lowwater.session.dependencies._DOUBTED", set())
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = internals(Lowwater(model="claude-opus-4-5").session()).dependencies.summarizers
    assert bool(found) is not bool(said)
    told = [record.message for record in caplog.records if "summaries are extracted" in record.message]
    assert [message.startswith(said) for message in told] == [True] * bool(said)


def test_a_switch_to_another_provider_or_url_sends_nothing_to_the_first_ones_summarizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    session = Lowwater(model="claude-opus-4-5").session()
    setup = internals(session).shared.setup
    assert setup.may_ask(internals(session).shared.state)
    session.use("claude-sonnet-4-5")
    assert setup.may_ask(internals(session).shared.state), "the same provider"
    session.use("gpt-6-sol")
    assert not setup.may_ask(internals(session).shared.state)
    session.use("claude-opus-4-5", base_url="https://proxy.example")
    assert not setup.may_ask(internals(session).shared.state)


def test_a_missing_key_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lowwater.session.dependencies._DOUBTED", set())
    for _ in range(2):
        Lowwater(model="claude-opus-4-5")
    Lowwater(model="claude-opus-4-5", summarizer=())
    said = [record.message for record in caplog.records if "is not set" in record.message]
    assert len(said) == 1
    assert said[0].startswith("ANTHROPIC_API_KEY is not set: summaries are extracted")


def test_a_request_carries_the_marks_of_its_provider() -> None:
    session = Lowwater(model="claude-haiku-4-5").session()
    body = session.prepare([{"role": "user", "content": "Hello."}], system="Hi.").as_anthropic()
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert body["system"] == [{"type": "text", "text": "Hi.", "cache_control": mark}]
    assert body["messages"][0]["content"] == [{"type": "text", "text": "Hello.", "cache_control": mark}]
    assert str(session.status()).count("prompt caching: on, 1h") == 1


def test_one_message_may_be_a_dict_bytes_or_what_an_sdk_returned() -> None:
    session = Lowwater(model="gpt-4o").session()
    session.append({"role": "user", "content": "one"})
    session.append(ChatCompletionMessage(role="assistant", content="two"))
    session.append(b'{"role": "user", "content": "three"}')
    assert [message["content"] for message in session.history()] == ["one", "two", "three"]
    for nonsense in ("hello", 7, None, [None]):
        with pytest.raises(BadInput):
            session.append(nonsense)


def test_what_is_empty_is_left_out_of_a_request() -> None:
    request = (
        Lowwater(model="gpt-4o").session().prepare([{"role": "user", "content": "x"}], system="", tools=[])
    )
    assert set(request.as_openai(cache_key=False)) == {"messages"}
    assert set(request.as_anthropic()) == {"messages"}
    assert [message["role"] for message in request.as_openai()["messages"]] == ["user"]


def test_bad_messages_are_refused_and_change_nothing() -> None:
    session = Lowwater(model="gpt-4o").session()
    session.append({"role": "user", "content": "Hello."})
    before = internals(session).ledger
    with pytest.raises(MalformedMessage, match="message 1"):
        session.append([{"role": "system", "content": "x"}, {"role": "nobody"}])
    with pytest.raises(BadInput):
        session.prepare([{"role": "user", "content": object()}])
    assert internals(session).ledger is before
    assert session.prepare().as_anthropic()["messages"], "the format was not taken from what was refused"


def test_an_empty_session_cannot_be_sent() -> None:
    with pytest.raises(IllegalView, match="the view is empty"):
        Lowwater(model="gpt-4o").session().prepare()


def test_an_unknown_policy_is_refused_with_the_name_most_like_it() -> None:
    with pytest.raises(BadSetting, match="did you mean runway"):
        Lowwater(model="gpt-4o", policy="runaway")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"summarizer": object()}, "a object is no summarizer"),
        ({"summarizer": [len]}, "is no summarizer"),
        ({"deadline": 0.0}, "seconds above 0"),
        ({"deadline": float("nan")}, "seconds above 0"),
    ],
    ids=["object", "function", "no time", "not a number"],
)
def test_options_that_make_no_sense_are_refused(options: Any, said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        Lowwater(model="gpt-4o", **options)


def test_a_repeated_message_does_not_make_a_clients_own_marks_too_many() -> None:
    def marked(text: str, role: str = "user") -> dict[str, Any]:
        mark = {"type": "ephemeral"}
        return {"role": role, "content": [{"type": "text", "text": text, "cache_control": mark}]}

    steps: list[Any] = [
        message
        for number in range(30)
        for message in (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"n": number}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"out put {number}" * 99}
                ],
            },
        )
    ]
    session = Lowwater(model="my-claude", policy="threshold").session()
    steps[-1]["content"][0]["cache_control"] = steps[-3]["content"][0]["cache_control"] = {
        "type": "ephemeral"
    }
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    session.learn_context_length(20_000)
    internals(session).sync_messages([marked("Look into it."), *steps], system=system)
    assert session.compress() is not None
    body = session.prepare(system=system).as_anthropic()
    said = [
        part
        for message in body["messages"]
        for part in message["content"]
        if part.get("text") == "Look into it."
    ]
    assert len(said) == 2, "where it was said, and again behind the summary"
    assert json.dumps(body).count('"cache_control"') == 4


def test_explain_and_status_speak_before_and_after_the_first_turn() -> None:
    session = Lowwater(model="gpt-4o", policy="runway").session("mine")
    assert session.explain() == "Nothing was decided yet: call prepare first."
    session.prepare(CHAT)
    session.prepare()
    assert isinstance(internals(session).decision, Keep)
    assert "below the threshold" in session.explain()
    assert str(session.status()).startswith("mine · gpt-4o · runway\n")
    assert "1 compaction, the last by summary" in str(session.status())


def test_usage_calibrates_what_the_next_prompt_is_believed_to_be() -> None:
    session = Lowwater(model="claude-haiku-4-5").session()
    session.append({"role": "user", "content": "Hello."})
    session.prepare()
    session.record(answer("Hi.", prompt=30_000))
    assert session.status().prompt == pytest.approx(30_000, abs=50)
    assert session.status().totals.turns == 1


def test_what_the_provider_compacted_itself_is_billed_but_is_no_prompt() -> None:
    steps = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ]
    session = Lowwater(model="claude-opus-5-5").session()
    session.append({"role": "user", "content": "Hello."})
    session.prepare()
    session.record(answer("Hi.", prompt=23_000, iterations=steps))
    assert session.status().prompt == pytest.approx(23_000, abs=100)
    assert session.status().totals.prompt == 203_000


def test_every_event_reaches_every_sink_and_none_is_kept() -> None:
    seen: list[Any] = []
    memory, callback = MemorySink(), CallbackSink(lambda session, event: seen.append((session, event)))
    sinks: list[Sink] = [memory, callback]
    session = Lowwater(model="gpt-4o", sinks=sinks).session("s")
    for _ in range(50):
        session.append({"role": "user", "content": "More."})
        session.prepare()
    assert len(memory.events) == 50
    assert seen == memory.events


def test_a_compaction_says_how_long_it_took() -> None:
    clock, sink = ScriptedClock(100.0), RecordingSink()

    class Slow(ScriptedSummarizer):
        def summarize(self, request: Any, /) -> Any:
            clock.advance(2.5)
            return super().summarize(request)

    slow = Slow(fail(RuntimeError()), write("no"))
    session = Lowwater(model="gpt-4o", policy="runway", summarizer=slow, sinks=[sink], clock=clock).session()
    session.prepare(CHAT)
    assert [event.seconds for event in sink.compactions] == [5.0]
    last = internals(session).last_compaction
    assert last is not None
    assert last.seconds == 5.0


def test_a_sink_and_a_callback_that_fail_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def callback(_: object) -> None:
        raise RuntimeError(SECRET)

    broken, whole = RecordingSink(RuntimeError(SECRET)), RecordingSink()
    session = Lowwater(model="gpt-4o", policy="runway", sinks=[broken, whole], on_warning=callback).session()
    with caplog.at_level(logging.DEBUG, "lowwater"):
        request = session.prepare(CHAT)
    assert request.tokens < 64_000
    assert len(whole.compactions) == 1
    assert "a sink failed: RuntimeError" in caplog.text
    assert SECRET not in caplog.text


def test_warnings_come_once_each_and_again_after_usage_fell() -> None:
    levels: list[str] = []
    session = Lowwater(
        model="gpt-4o", policy="never", on_warning=lambda warning: levels.append(warning.level)
    ).session()
    size = Lowwater(model="gpt-4o", policy="never").session().prepare(CHAT).tokens
    session.learn_context_length(size + size // 50 + 16_000)
    session.prepare(CHAT)
    assert levels == ["info", "notice", "warning", "critical"], (
        "on the way to the wall, where this policy acts"
    )
    session.prepare()
    assert len(levels) == 4
    session.compress()
    session.prepare()
    session.rewind("before-compaction-1")
    session.prepare()
    assert levels[4:] == ["info", "notice", "warning", "critical"]


def test_nothing_that_was_said_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    messages = [dict(message) for message in CHAT]
    for message in messages:
        if isinstance(message["content"], str):
            message["content"] += f" {SECRET}"
    failing = ScriptedSummarizer(fail(RuntimeError(SECRET)))
    session = Lowwater(model="gpt-4o", summarizer=failing).session()
    with caplog.at_level(logging.DEBUG):
        session.prepare(messages, system=SECRET)
        session.prepare()
        session.compress(focus=SECRET)
    assert "compaction 1" in caplog.text
    assert "kept " in caplog.text
    assert SECRET not in caplog.text


def test_quiet_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(output=OutputSettings(quiet=True))
    with caplog.at_level(logging.DEBUG):
        Lowwater(model="gpt-4o", settings=settings).session().prepare(CHAT)
    assert caplog.text == ""


def test_each_event_says_what_triggered_it_what_each_phase_did_and_the_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "lowwater"):
        session = Lowwater(model="gpt-4o", policy="hermes-classic").session("s")
        session.prepare(CHAT)
    (line,) = [record.getMessage() for record in caplog.records if "compaction" in record.getMessage()]
    event = internals(session).last_compaction
    assert event is not None
    assert line.startswith(f"s: compaction 1 (prune-and-summary): {event.before:,} → {event.after:,} tokens")
    for phase in event.phases:
        assert f"{phase.mechanism} −{phase.removed:,}" in line
    assert "summary of" in line


def test_focus_reaches_the_summarizer() -> None:
    summarizer = ScriptedSummarizer(write("no"))
    session = Lowwater(model="gpt-4o", policy="threshold", summarizer=summarizer).session()
    internals(session).sync_messages(CHAT)
    session.compress("the database schema")
    assert summarizer.requests[0].focus == "the database schema"


def test_the_next_summary_updates_the_one_before() -> None:
    summarizer = ScriptedSummarizer(write("no"))
    session = Lowwater(model="gpt-4o", policy="threshold", summarizer=summarizer).session()
    session.prepare(CHAT)
    first = internals(session).ledger.view
    text = json.dumps(CHAT[1:]).replace('"call_', '"call_2_')
    session.append([{"role": "assistant", "content": "Done."}, *json.loads(text)])
    session.compress()
    request = summarizer.requests[-1]
    assert request.previous
    known = {
        number
        for item in first.items
        if hasattr(item, "sources")
        for s in item.sources
        for number in range(s.first, s.last + 1)
    }
    assert not known & set(request.numbers), "what is in the summary is not sent a second time"
