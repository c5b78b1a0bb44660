"""Where a model is asked, and who gets to see the key."""

import pytest

from lowwater.core.messages import Format
from lowwater.errors import BadSetting
from lowwater.summarizers.endpoint import endpoint_for, format_at


@pytest.mark.parametrize(
    ("model", "base_url", "format"),
    [
        ("claude-opus-5-5", "", "anthropic"),
        ("gpt-6.1-sol", "", "openai_chat"),
        ("anthropic/claude-opus-5-5", "https://openrouter.ai/api/v1", "openai_chat"),
        ("claude-opus-5-5", "http://localhost:4000/v1", "openai_chat"),
        ("deepseek-v4", "https://api.deepseek.com/anthropic", "anthropic"),
        ("claude-opus-5-5", "https://api.anthropic.com", "anthropic"),
        ("any", "http://localhost/v1/messages", "anthropic"),
        ("any", "http://localhost/v1/responses", "openai_responses"),
    ],
    ids=["claude", "gpt", "router", "compatible", "path", "host", "whole path", "whole path of responses"],
)
def test_the_format_is_told_from_the_url_or_else_the_model(model: str, base_url: str, format: Format) -> None:
    assert format_at(model, base_url) == format


@pytest.mark.parametrize(
    ("base_url", "format", "url"),
    [
        ("", "anthropic", "https://api.anthropic.com/v1/messages"),
        ("", "openai_chat", "https://api.openai.com/v1/chat/completions"),
        ("", "openai_responses", "https://api.openai.com/v1/responses"),
        ("http://here:1/v1/", "openai_responses", "http://here:1/v1/responses"),
        ("http://here:1/v1/responses", "openai_responses", "http://here:1/v1/responses"),
        ("http://here:1/", "anthropic", "http://here:1/v1/messages"),
        ("http://here:1/v1/", "anthropic", "http://here:1/v1/messages"),
        ("http://here:1/v1/messages", "anthropic", "http://here:1/v1/messages"),
        ("http://here:1/v1", "openai_chat", "http://here:1/v1/chat/completions"),
        ("http://here:1/x?api-version=7", "openai_chat", "http://here:1/x/chat/completions?api-version=7"),
    ],
)
def test_a_base_url_is_taken_as_the_sdks_take_it(base_url: str, format: Format, url: str) -> None:
    assert endpoint_for("m", base_url=base_url, format=format).url == url


def test_the_environments_key_goes_to_the_provider_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-outside")
    assert endpoint_for("claude-x").headers["x-api-key"] == "sk-from-outside"
    elsewhere = endpoint_for("claude-x", base_url="https://example.org/anthropic")
    assert "sk-from-outside" not in str(dict(elsewhere.headers))


@pytest.mark.parametrize(
    ("format", "name", "value"),
    [
        ("anthropic", "x-api-key", "sk-1"),
        ("openai_chat", "authorization", "Bearer sk-1"),
        ("openai_responses", "authorization", "Bearer sk-1"),
    ],
)
def test_each_provider_gets_the_key_its_way(format: Format, name: str, value: str) -> None:
    endpoint = endpoint_for("m", base_url="http://here", api_key="sk-1", format=format)
    assert endpoint.headers[name] == value


def test_headers_of_ones_own_win() -> None:
    endpoint = endpoint_for(
        "claude-x", api_key="k", headers={"Anthropic-Beta": "context-1m", "X-API-KEY": "other"}
    )
    assert endpoint.headers["anthropic-beta"] == "context-1m"
    assert endpoint.headers["x-api-key"] == "other"


def test_no_print_of_it_holds_the_key() -> None:
    endpoint = endpoint_for("m", base_url="http://here/?key=sk-secret-2", api_key="sk-secret-1")
    assert "secret" not in f"{endpoint!r} {endpoint} {[endpoint]}"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": ""}, "name one"),
        ({"model": "m", "base_url": "example.org/v1"}, "https://"),
        ({"model": "m", "base_url": "ftp://example.org"}, "https://"),
        ({"model": "m", "base_url": "http://user:sk-secret@here"}, "holds a password"),
        ({"model": "m", "api_key": "sk-secret\n"}, "no header can carry"),
        ({"model": "m", "api_key": "sk-secret—"}, "no header can carry"),
        ({"model": "m", "format": "gemini"}, "unknown format 'gemini'"),
    ],
    ids=["no model", "no scheme", "other scheme", "password", "line end", "dash", "format"],
)
def test_what_makes_no_sense_is_refused_without_quoting_secrets(options: dict[str, str], says: str) -> None:
    with pytest.raises(BadSetting, match=says) as caught:
        endpoint_for(**options)  # type: ignore[arg-type]  # a wrong format is what it is about
    assert "sk-secret" not in str(caught.value)
