"""With nothing to compact the gateway is not there: bytes go through as they came, in both directions."""

import httpx2
import pytest

from lowwater.testing.provider import Fail, Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through

BODIES = {
    "/v1/messages": b'{ "model":"claude-opus-4-5" ,"max_tokens":50, "stream":%s, "temperature":1.00, '
    b'"messages":[ {"role":"user","content":"caf\\u00e9 \xe2\x80\x94 1e2"} ], "unknown":{"b":1,"a":[ ]}}',
    "/v1/chat/completions": b'{"model":"gpt-5.5","messages":[{"content":"hi","role":"user","x":1.0}],  "stream":%s,'
    b'"max_completion_tokens":50}',
    "/v1/responses": b'{"model":"gpt-5.5", "input":[{"role":"user","content":"hi" , "type":"message"}],"stream":%s}',
}


def straight(through: Through, path: str, body: bytes) -> httpx2.Response:
    headers = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}
    headers |= {"content-type": "application/json", "accept-encoding": "identity"}
    return httpx2.post(through.provider.anthropic_base_url + path, content=body, headers=headers)


def without_ids(body: bytes) -> bytes:
    """Return a body without what the provider numbers."""
    return b"".join(b"#" if 48 <= byte <= 57 else bytes([byte]) for byte in body)


@pytest.mark.parametrize("path", list(BODIES))
@pytest.mark.parametrize("stream", [b"false", b"true"], ids=["whole", "streamed"])
def test_bytes_go_through_untouched(start: Starting, path: str, stream: bytes) -> None:
    through = start(lambda _: Say(text="It is late — good night. " * 20))
    body = BODIES[path] % stream
    answer = through.post(body, path, authorization="Bearer k")
    assert answer.status_code == 200, answer.text
    assert through.provider.requests[-1].raw == body
    expected = straight(through, path, body)
    assert without_ids(answer.content) == without_ids(expected.content)
    assert answer.headers["content-type"] == expected.headers["content-type"]


@pytest.mark.parametrize("path", list(BODIES))
def test_a_second_turn_is_the_same_session_and_still_untouched(start: Starting, path: str) -> None:
    through = start()
    listed = "input" if path == "/v1/responses" else "messages"
    first = [{"role": "user", "content": "hello"}]
    model = MODEL if path == "/v1/messages" else "gpt-5.5"
    body = {"model": model, listed: first} | ({"max_tokens": 9} if path == "/v1/messages" else {})
    answer = through.post(body, path, authorization="Bearer k").json()
    said = {
        "/v1/messages": lambda: [{"role": "assistant", "content": answer["content"]}],
        "/v1/chat/completions": lambda: [answer["choices"][0]["message"]],
        "/v1/responses": lambda: answer["output"],
    }[path]()
    again = body | {listed: [*first, *said, {"role": "user", "content": "and then?"}]}
    sent = through.post(again, path, authorization="Bearer k")
    assert sent.status_code == 200, sent.text
    assert through.provider.requests[-1].raw == sent.request.content
    (session,) = through.store.sessions()
    assert (session.turns, session.compactions) == (2, 0)
    assert session.messages == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_a_refusal_passes_as_it_is(start: Starting, status: int) -> None:
    through = start([Fail(status=status, type="some_error", message="no such thing", retry_after=7)])
    answer = through.post({"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})
    assert answer.status_code == status
    assert answer.json()["error"]["message"] == "no such thing"
    assert answer.headers["retry-after"] == "7"
    assert len(through.provider.requests) == 1, "nothing is tried twice"


def test_what_is_no_conversation_goes_through(start: Starting) -> None:
    through = start()
    models = httpx2.get(
        through.url + "/v1/models?limit=3", headers={"x-api-key": "k", "anthropic-version": "1"}
    )
    assert models.status_code == 200
    assert through.provider.requests[-1].path == "/v1/models?limit=3"
    assert httpx2.get(through.url + "/api/tags").status_code == 404
    assert httpx2.head(through.url + "/").status_code in {200, 404}


def test_headers_go_through_and_keys_stay_nowhere(start: Starting) -> None:
    through = start()
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    through.post(body, x_api_key="sk-very-secret", anthropic_beta="one,two", x_claude_code_session_id="abc")
    seen: Seen = through.provider.requests[-1]
    assert seen.headers["anthropic-beta"] == "one,two"
    assert seen.headers["x-claude-code-session-id"] == "abc"
    (session,) = through.store.sessions()
    kept = repr(through.store.read(session.name)) + repr(session)
    assert "sk-very-secret" not in kept
