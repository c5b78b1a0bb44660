from typing import get_args

import msgspec
import pytest

from lowwater.core.formats.codec import decode_messages
from lowwater.core.formats.files import decode_conversation, encode_conversation
from lowwater.core.messages import Format
from lowwater.testing.provider.anthropic import Signer
from lowwater.testing.provider.anthropic import rules as anthropic_rules
from lowwater.testing.provider.openai import rules as openai_rules
from lowwater.testing.provider.prompt import ReceivedRequest, first_refusal
from tests.generated import GeneratedSession, Kind, generate_session

FORMS: tuple[Format, ...] = ("openai_chat", "anthropic")
"""What sessions are generated in."""
KINDS = get_args(Kind)


@pytest.fixture(scope="module", params=KINDS)
def session(request: pytest.FixtureRequest) -> GeneratedSession:
    return generate_session(request.param, seed=1, turns=90)


def raws_of(session: GeneratedSession, form: Format) -> list[bytes]:
    return session.as_anthropic().messages if form == "anthropic" else session.as_openai_chat()


def test_the_two_formats_say_the_same(session: GeneratedSession) -> None:
    chat = decode_messages(session.as_openai_chat()[1:], "openai_chat")
    anthropic = decode_messages(session.as_anthropic().messages, "anthropic")
    for form in (chat, anthropic):
        assert [call for message in form for call in message.calls] == [
            call for message in session.messages for call in message.calls
        ]
        assert [result.text for message in form for result in message.results] == [
            result.text for message in session.messages for result in message.results
        ]


def test_the_messages_api_accepts_every_request_of_the_session(session: GeneratedSession) -> None:
    # Signatures are made up, so the rules about thinking cannot hold.
    rules = [rule for rule in anthropic_rules(Signer(b"key")) if not rule.__name__.startswith("thinking_")]
    form = session.as_anthropic()
    messages = [msgspec.json.decode(raw) for raw in form.messages]
    for stop in range(1, len(messages) + 1, 2):
        body = {
            "model": session.model,
            "max_tokens": 1_000,
            "system": msgspec.json.decode(form.system),
            "tools": msgspec.json.decode(session.tools_json("anthropic")),
            "messages": messages[:stop],
        }
        headers = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
        assert first_refusal(rules, incoming(body, headers)) is None


def test_the_chat_api_accepts_every_request_of_the_session(session: GeneratedSession) -> None:
    messages = [msgspec.json.decode(raw) for raw in session.as_openai_chat()]
    tools = msgspec.json.decode(session.tools_json("openai_chat"))
    asked = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    for stop in asked:
        body = {"model": session.model, "tools": tools, "messages": messages[:stop]}
        assert first_refusal(openai_rules(), incoming(body, {"authorization": "Bearer key"})) is None


def incoming(body: dict[str, object], headers: dict[str, str]) -> ReceivedRequest:
    return ReceivedRequest(
        headers=headers, size=1, body=body, context_length=10_000_000, count=lambda text: len(text) // 4
    )


def test_the_recording_is_a_header_and_one_message_a_line(session: GeneratedSession) -> None:
    recording = session.as_canonical_jsonl()
    conversation = decode_conversation(recording)
    header = msgspec.json.decode(conversation.around)
    assert header["id"] == session.id
    assert header["first_request_input_tokens"] == session.usages[0].prompt
    assert (conversation.shape, conversation.format) == ("lines", "openai_chat")
    assert len(conversation.messages) == len(session.messages) + 1
    assert encode_conversation(conversation) == recording


def test_the_recording_keeps_time_usage_names_and_errors(session: GeneratedSession) -> None:
    lines = [msgspec.json.decode(line) for line in session.as_canonical_jsonl().splitlines()][2:]
    assert [line["role"] for line in lines] == [message.role for message in session.messages]
    assert all(line["ts"].endswith("Z") for line in lines)
    billed = [line["usage"] for line in lines if line["role"] == "assistant"]
    assert [usage["cache_read_input_tokens"] for usage in billed] == [
        usage.cache_read for usage in session.usages
    ]
    for line, message in zip(lines, session.messages, strict=True):
        assert line.get("is_error", False) == any(result.is_error for result in message.results)
        assert line.get("name", "") == message.name


def test_time_never_runs_backwards(session: GeneratedSession) -> None:
    assert len(session.times) == len(session.messages)
    assert list(session.times) == sorted(session.times)


def test_usage_follows_from_the_gaps(session: GeneratedSession) -> None:
    """A request within five minutes of the previous one reads all of it from the cache, a later one nothing."""
    answers = [at for at, message in enumerate(session.messages) if message.role == "assistant"]
    requested = [session.times[at - 1] for at in answers]
    previous = 0
    for number, usage in enumerate(session.usages):
        is_warm = number > 0 and requested[number] - requested[number - 1] <= 300
        assert usage.cache_read == (previous if is_warm else 0)
        assert usage.prompt > previous
        assert usage.output > 0
        previous = usage.cache_read + usage.cache_write
