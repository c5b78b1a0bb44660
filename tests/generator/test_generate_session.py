"""Generated sessions: always the same for a seed, as long as asked for, legal, and with a ground truth for recall."""

import itertools
import re
from hashlib import sha256
from typing import get_args

import msgspec
import pytest

from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Message, texts_of
from lowwater.errors import BadSetting
from lowwater.testing.provider.anthropic import Signer
from lowwater.testing.provider.anthropic import rules as anthropic_rules
from lowwater.testing.provider.openai import rules as openai_rules
from lowwater.testing.provider.prompt import ReceivedRequest, first_refusal
from tests.generated import GeneratedSession, Kind, Pauses, generate_session

# The first 16 digits of the SHA-256 of seed 7 in the canonical form: a change here changes every recorded figure.
DIGESTS = {
    "coding": "3246a31f75f829ac",
    "research": "1b943f8ad65fe5b9",
    "support": "e4fa7d04ad133437",
}


@pytest.fixture(scope="module")
def sessions() -> dict[Kind, GeneratedSession]:
    return {kind: generate_session(kind, seed=7, turns=120) for kind in get_args(Kind)}


@pytest.fixture(params=get_args(Kind))
def session(sessions: dict[Kind, GeneratedSession], request: pytest.FixtureRequest) -> GeneratedSession:
    return sessions[request.param]


def text_of(message: Message) -> str:
    return "\n".join(texts_of(message))


def incoming(body: dict[str, object], headers: dict[str, str]) -> ReceivedRequest:
    return ReceivedRequest(
        headers=headers, size=1, body=body, context_length=10_000_000, count=lambda text: len(text) // 4
    )


def test_a_seed_gives_the_bytes_it_always_gave(sessions: dict[Kind, GeneratedSession]) -> None:
    digests = {kind: sha256(one.as_canonical_jsonl()).hexdigest()[:16] for kind, one in sessions.items()}
    assert digests == DIGESTS
    assert {len(one.usages) for one in sessions.values()} == {120}


def test_a_session_stops_at_the_wanted_size_or_number_of_calls() -> None:
    last = generate_session("coding", seed=3, target_tokens=40_000).usages[-1]
    assert 40_000 <= last.prompt + last.output < 40_000 + 30_000
    assert len(generate_session(seed=1, turns=10, target_tokens=10_000_000).usages) == 10
    with pytest.raises(BadSetting, match="at least 1"):
        generate_session(seed=1, turns=0)
    with pytest.raises(BadSetting, match="coding, research, support"):
        generate_session("cooking", seed=1)  # type: ignore[arg-type]  # the point of the test


def test_a_user_who_always_leaves_overnight_comes_back_the_next_day() -> None:
    session = generate_session("support", seed=2, turns=40, pauses=Pauses(coffee=0, overnight=1))
    times = zip(session.times, session.times[1:], session.messages[1:], strict=False)
    before_user = [after - before for before, after, message in times if message.role == "user"]
    assert before_user
    assert min(before_user) >= 9 * 3600


def test_both_apis_accept_what_is_sent_and_are_told_the_same(session: GeneratedSession) -> None:
    # Signatures are made up, so the rules about thinking cannot hold.
    rules = [rule for rule in anthropic_rules(Signer(b"key")) if not rule.__name__.startswith("thinking_")]
    form, chat = session.as_anthropic(), session.as_openai_chat()
    of_messages = {
        "model": session.model,
        "max_tokens": 1_000,
        "system": msgspec.json.decode(form.system),
        "tools": msgspec.json.decode(session.tools_json("anthropic")),
        "messages": [msgspec.json.decode(raw) for raw in form.messages[:-1]],
    }
    of_chat = {
        "model": session.model,
        "tools": msgspec.json.decode(session.tools_json("openai_chat")),
        "messages": [msgspec.json.decode(raw) for raw in chat[:-1]],
    }
    headers = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
    assert first_refusal(rules, incoming(of_messages, headers)) is None
    assert first_refusal(openai_rules(), incoming(of_chat, {"authorization": "Bearer key"})) is None
    said = [decode_messages(form.messages, "anthropic"), decode_messages(chat[1:], "openai_chat")]
    for messages in said:
        calls = [call for message in messages for call in message.calls]
        assert calls == [call for message in session.messages for call in message.calls]


def test_usage_follows_from_the_gaps(session: GeneratedSession) -> None:
    """A request within five minutes of the previous one reads all of it from the cache, a later one nothing."""
    assert list(session.times) == sorted(session.times)
    answers = [at for at, message in enumerate(session.messages) if message.role == "assistant"]
    requested = [session.times[at - 1] for at in answers]
    previous = 0
    for number, usage in enumerate(session.usages):
        is_warm = number > 0 and requested[number] - requested[number - 1] <= 300
        assert usage.cache_read == (previous if is_warm else 0)
        assert usage.prompt > previous
        previous = usage.cache_read + usage.cache_write


def test_a_reference_stands_in_both_messages_and_nowhere_before(session: GeneratedSession) -> None:
    texts = [text_of(message) for message in session.messages]
    assert len(session.references) > 0.4 * len(session.usages)
    for reference in session.references:
        assert reference.text in texts[reference.seen]
        assert reference.text in texts[reference.used]
    for reference in session.references[:: max(1, len(session.references) // 40)]:
        assert not any(reference.text in text for text in texts[: reference.seen])


def test_failing_tests_pass_after_the_edit(sessions: dict[Kind, GeneratedSession]) -> None:
    session = sessions["coding"]
    ran = {
        call.id
        for message in session.messages
        for call in message.calls
        if re.search(r"pytest|jest|go test", call.arguments)
    }
    failing = [
        re.search(r"FAIL|failed", result.text) is not None
        for message in session.messages
        for result in message.results
        if result.call_id in ran
    ]
    assert any(before and not after for before, after in itertools.pairwise(failing))
