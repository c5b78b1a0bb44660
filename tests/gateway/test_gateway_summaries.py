"""Summaries behind the gateway: only if the operator wants them, never in the way of the first byte, on a lent credential."""

from typing import Any

import httpx2
import pytest

from lowwater.core.accounts.figures import costs_of
from lowwater.core.events import Compaction
from lowwater.core.messages import Format
from lowwater.gateway.options import SummaryConsent
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.provider import Answer, CutOff, Fail, Hang, Refuse, Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through

CEILING = Settings(compression=CompressionSettings(max_view_tokens=12_000, protect_last_n=4))
TALK = "we spoke about the reader of files and its lexer, and what it does with blanks at the end of lines; "
SUMMARY = "## Goal\nMend the reader.\n## Constraints & Preferences\nLeave the lexer alone.\n" + "".join(
    f"- turn {number}: {TALK}\n" for number in range(20)
)


def is_summary(seen: Seen) -> bool:
    """Return whether a request asks for a summary."""
    last = seen.body["input" if "input" in seen.body else "messages"][-1]["content"]
    text = last if isinstance(last, str) else "".join(block.get("text", "") for block in last)
    return "summar" in text.lower()


MODELS: dict[Format, str] = {
    "anthropic": MODEL,
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-4.1",
}
EVERY = pytest.mark.parametrize("format", MODELS)


def talking(
    through: Through,
    turns: int,
    key: str = "sk-one",
    format: Format = "anthropic",
    *,
    headers: dict[str, str] | None = None,
    messages: list[Any] | None = None,
    model: str = "",
) -> list[Any]:
    """Talk on, from the beginning or from where a list of messages ends, and return the whole list."""
    messages = messages or [{"role": "user", "content": "Let us talk. " + TALK * 10}]
    for turn in range(turns):
        answer = post(through, messages, format, key, headers or {}, model=model)
        assert answer.status_code == 200, answer.text
        messages += [
            {"role": "assistant", "content": f"answer {turn} " + TALK * 10},
            {"role": "user", "content": f"turn {turn} " + TALK * 10},
        ]
    return messages


def post(
    through: Through,
    messages: list[Any],
    format: Format,
    key: str,
    headers: dict[str, str],
    *,
    model: str = "",
) -> httpx2.Response:
    """Send a conversation as the clients of a format do."""
    body: dict[str, Any] = {"model": model or MODELS[format], "stream": True}
    match format:
        case "anthropic":
            body |= {"max_tokens": 900, "system": "You talk.", "messages": messages}
            return through.post(body, **{"x_api_key": key, **headers})
        case "openai_chat":
            body |= {"messages": [{"role": "system", "content": "You talk."}, *messages]}
            body |= {"stream_options": {"include_usage": True}}
            return through.post(body, "/v1/chat/completions", authorization=f"Bearer {key}", x_api_key="")
        case "openai_responses":
            body |= {"instructions": "You talk.", "input": messages, "store": False}
            return through.post(body, "/v1/responses", authorization=f"Bearer {key}", x_api_key="")


def talks(seen: Seen) -> Say:
    return Say(text=SUMMARY) if is_summary(seen) else Say(text="answer " + TALK * 10)


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_nobody_is_asked_for_a_summary_unless_the_operator_wants_it(start: Starting) -> None:
    through = start(talks, settings=CEILING)
    talking(through, 30)
    assert not any(is_summary(seen) for seen in through.provider.requests)
    assert through.provider.refusals == ()


@pytest.mark.moves_prefix(reason="a prefetched summary is published")
@EVERY
def test_a_summary_is_prefetched_on_the_clients_key_and_published_later(
    start: Starting, format: Format
) -> None:
    through = start(talks, settings=CEILING, summaries="api-keys")
    talking(through, 30, format=format)
    asked = [seen for seen in through.provider.requests if is_summary(seen)]
    assert asked
    assert {seen.path for seen in asked} == {seen.path for seen in through.provider.requests}
    assert through.provider.refusals == ()
    (account,) = through.store.accounts()
    events = [event for event in account.events if isinstance(event, Compaction)]
    written = [event for event in events if event.summarizer == MODELS[format]]
    assert written
    assert costs_of(account).summaries, "and the bill shows it"
    assert account.session.turns == 30
    last = through.provider.requests[-1]
    assert b"Mend the reader." in last.raw


CONSENTS: dict[str, tuple[str, dict[str, str], bool]] = {
    "the operator agreed for API keys": ("api-keys", {}, True),
    "the client agreed": ("asked", {"x_lowwater_summaries": "on"}, True),
    "nobody agreed": ("asked", {}, False),
    "the operator forbade it": ("never", {"x_lowwater_summaries": "on"}, False),
    "an OAuth login of Anthropic's": (
        "api-keys",
        {"x_api_key": "", "authorization": "Bearer sk-ant-oat01-abcdef0123456789"},
        False,
    ),
    "a login by JSON Web Token": (
        "api-keys",
        {"x_api_key": "", "authorization": "Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmVk"},
        False,
    ),
    "a login beside a key": ("api-keys", {"authorization": "Bearer sk-ant-oat01-abcdef0123456789"}, False),
    "a ChatGPT account": ("api-keys", {"chatgpt_account_id": "acc-1"}, False),
}


@pytest.mark.moves_prefix(reason="a ceiling compacts")
@pytest.mark.parametrize(("summaries", "headers", "asks"), CONSENTS.values(), ids=CONSENTS)
def test_summaries_are_written_on_api_keys_whose_owner_agreed(
    start: Starting, summaries: SummaryConsent, headers: dict[str, str], asks: bool
) -> None:
    through = start(talks, settings=CEILING, summaries=summaries)
    talking(through, 30, headers=headers)
    assert any(is_summary(seen) for seen in through.provider.requests) == asks
    assert not any(
        b"x-lowwater" in name.encode() for seen in through.provider.requests for name in seen.headers
    )
    (account,) = through.store.accounts()
    compactions = [event for event in account.events if isinstance(event, Compaction)]
    assert compactions, "what no model summarises is compacted all the same"
    assert bool(costs_of(account).summaries) == asks


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_consent_that_is_withdrawn_holds_from_the_next_request_on(start: Starting) -> None:
    through = start(talks, settings=CEILING, summaries="asked")
    messages = talking(through, 20, headers={"x_lowwater_summaries": "on"})
    before = sum(is_summary(seen) for seen in through.provider.requests)
    assert before
    talking(through, 20, messages=messages)
    assert sum(is_summary(seen) for seen in through.provider.requests) == before
    assert len(through.store.sessions()) == 1


@pytest.mark.moves_prefix(reason="a ceiling compacts")
def test_consent_that_is_given_later_and_another_model_change_who_is_asked(start: Starting) -> None:
    through = start(talks, settings=CEILING, summaries="asked")

    def asked_since(before: int) -> set[str]:
        return {seen.body["model"] for seen in through.provider.requests[before:] if is_summary(seen)}

    agreed = {"x_lowwater_summaries": "on"}
    messages = talking(through, 12)
    assert asked_since(0) == set()
    before = len(through.provider.requests)
    talking(through, 14, messages=messages, headers=agreed)
    assert asked_since(before) == {MODEL}
    before = len(through.provider.requests)
    talking(through, 14, messages=messages, headers=agreed, model="claude-sonnet-4-5")
    assert asked_since(before) == {"claude-sonnet-4-5"}
    assert len(through.store.sessions()) == 1


FAILING: dict[str, Answer] = {
    "hangs": Hang(),
    "refuses": Refuse(),
    "writes nothing before its length is used up": CutOff(""),
    "is busy": Fail(503, "server_error", "busy", retry_after=0),
}


@pytest.mark.moves_prefix(reason="what no longer fits is made to fit without a model")
@pytest.mark.parametrize(
    ("format", "failure"),
    [("anthropic", "hangs"), *(("openai_responses", failure) for failure in FAILING)],
)
def test_a_summarizer_that_fails_holds_nobody_up(start: Starting, format: Format, failure: str) -> None:
    through = start(
        lambda seen: FAILING[failure] if is_summary(seen) else talks(seen),
        settings=CEILING,
        summaries="api-keys",
        summary_seconds=0.2,
    )
    talking(through, 30, format=format)
    asked = sum(is_summary(seen) for seen in through.provider.requests)
    assert asked
    (session,) = through.store.sessions()
    assert session.turns == 30
    if failure == "hangs":
        assert asked == 1, "a call that is given up may be billed: it is not repeated at the next turn"


def test_one_clients_key_is_never_used_for_another(start: Starting) -> None:
    through = start(talks, settings=CEILING, summaries="api-keys")
    for key in ("sk-one", "sk-two"):
        talking(through, 20, key=key)
    assert len(through.store.sessions()) == 2
    assert through.provider.refusals == ()
