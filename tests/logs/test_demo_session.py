"""The session that is shipped for the demo: what the generator makes, read back without loss, in either format."""

import lzma

import pytest

from lowwater.errors import BadSetting
from lowwater.logs.demo_session import demo_session
from lowwater.testing.legality import refusal_of
from tests.generated import GeneratedSession, generate_session
from tools.demo_session import FILE, session_lines

SESSION = demo_session()


@pytest.fixture(scope="module")
def made() -> GeneratedSession:
    return generate_session("coding", seed=20261115, model="claude-haiku-4-5", target_tokens=330_000)


def test_the_script_writes_the_file_that_is_shipped() -> None:
    assert lzma.decompress(FILE.read_bytes()) == session_lines()


def test_it_is_the_generated_session(made: GeneratedSession) -> None:
    assert SESSION.recording == made.as_recording()
    assert [each.message.name for each in SESSION.recording.messages] == [each.name for each in made.messages]
    assert sum(map(len, SESSION.mentions)) == len(made.references) > 100
    for reference in made.references:
        assert reference.text in SESSION.mentions[reference.used]


def test_it_is_as_long_as_its_docstring_says() -> None:
    calls = sum(each.message.role == "assistant" for each in SESSION.recording.messages)
    assert f"{calls} calls" in str(demo_session.__doc__)
    assert SESSION.recording.model in str(demo_session.__doc__)


def test_the_beginning_ends_where_a_request_would_be_sent() -> None:
    for turns in (0, 1, 30, 471):
        beginning = demo_session(turns=turns)
        roles = [message["role"] for message in beginning.as_anthropic()]
        assert roles.count("assistant") == turns
        assert roles[-1] == "user"
        assert SESSION.as_anthropic()[: len(roles)] == beginning.as_anthropic()
        assert len(beginning.mentions) == len(beginning.recording.messages)
    assert demo_session(turns=10_000) == SESSION
    with pytest.raises(BadSetting, match="turns is -1"):
        demo_session(turns=-1)


def test_a_provider_takes_it_in_either_format() -> None:
    beginning = demo_session(turns=200)
    chat = {"model": "gpt-5", "messages": beginning.as_openai_chat(), "tools": beginning.tools("openai_chat")}
    assert refusal_of(chat, "openai_chat") is None
    messages = {
        "model": "claude-haiku-4-5",
        "max_tokens": 1_000,
        "system": beginning.system,
        "messages": beginning.as_anthropic(),
        "tools": beginning.tools("anthropic"),
    }
    assert refusal_of(messages, "anthropic") is None
    assert beginning.as_openai_chat()[0] == {"role": "system", "content": beginning.system}
