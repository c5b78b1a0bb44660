"""No web page gets in, whatever a browser lets it send; what a provider refuses leaves nothing behind."""

import logging
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from lowwater.core.secrets.redaction import conceal
from lowwater.gateway.options import new_capability
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Answer, Fail, Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through, eventually

BODY = msgspec.json.encode(
    {
        "model": MODEL,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Remember: the door is open."}],
    }
)
JSON = "application/json"
MESSAGES, CHAT = "/v1/messages", "/v1/chat/completions"


def sent(through: Through, path: str = MESSAGES, *, method: str = "POST", **headers: str) -> httpx2.Response:
    """Send the body with these headers and no others."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    content = BODY if method == "POST" else None
    return httpx2.request(method, through.url + path, content=content, headers=named, timeout=60)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example", "content_type": "text/plain"},
        {"origin": "https://evil.example", "content_type": JSON},
        {"origin": "null", "content_type": JSON},
        {"origin": "http://localhost:3000", "content_type": JSON},
        {"origin": "http://127.0.0.1.evil.example", "content_type": JSON},
        {"host": "evil.example", "content_type": JSON},
        {"host": "evil.example:4141", "origin": "http://evil.example:4141", "content_type": JSON},
        {"host": "", "content_type": JSON},
        {"sec_fetch_site": "cross-site", "content_type": JSON},
        {"sec_fetch_site": "none, cross-site", "content_type": JSON},
        {"origin": "http://evil.example@127.0.0.1:PORT", "content_type": JSON},
    ],
    ids=lambda headers: " ".join(headers.values()),
)
def test_a_web_page_reaches_no_provider(start: Starting, headers: dict[str, str]) -> None:
    through = start()
    port = through.url.rpartition(":")[2]
    headers = {name: value.replace("PORT", port) for name, value in headers.items()}
    for path in (MESSAGES, CHAT, "/v1/models", "/v1/files"):
        answer = sent(through, path, x_api_key="sk-one", **headers)
        assert answer.status_code == 403, path
        error = answer.json()["error"]
        assert error["type"] == "permission_error"
        assert "--allow-" in error["message"] or "other sites" in error["message"]
        assert ("type" in answer.json()) == (path != CHAT), "in the words of the format the client speaks"
    assert (through.provider.requests, through.store.sessions()) == ((), [])


@pytest.mark.parametrize(
    "hosts",
    [
        ("127.0.0.1", "evil.example"),
        ("evil.example", "127.0.0.1"),
        ("127.0.0.1#.evil.example",),
        ("127.0.0.1/.evil.example",),
        ("localhost?.evil.example",),
        ("evil.example@127.0.0.1",),
        ("127.0.0.1:80:80",),
        ("[::1].evil.example",),
    ],
    ids=" and ".join,
)
def test_a_host_is_one_host_and_its_port_and_nothing_else(start: Starting, hosts: tuple[str, ...]) -> None:
    through = start()
    with closing(HTTPConnection(through.url.removeprefix("http://"), timeout=60)) as client:
        client.putrequest("POST", MESSAGES, skip_host=True)
        for host in hosts:
            client.putheader("host", host)
        client.putheader("content-type", JSON)
        client.putheader("content-length", str(len(BODY)))
        client.endheaders(BODY)
        answer = client.getresponse()
        assert (answer.status, b"Host" in answer.read()) == (403, True)
    assert (through.provider.requests, through.store.sessions()) == ((), [])


def test_a_web_page_reads_nothing_of_the_gateway(start: Starting) -> None:
    through = start()
    for path in ("/", "/healthz", "/metrics"):
        for header in (
            {"host": "evil.example"},
            {"origin": "https://evil.example"},
            {"sec_fetch_site": "same-site"},
        ):
            assert sent(through, path, method="GET", **header).status_code == 403, (path, header)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "text/plain; charset=application/json",
        "application/x-www-form-urlencoded",
        "",
        "application/json;, text/plain",
    ],
)
def test_a_conversation_comes_as_json_or_not_at_all(start: Starting, kind: str) -> None:
    through = start()
    for path in (MESSAGES, "/v1/messages/", CHAT, "/v1/responses"):
        answer = sent(through, path, x_api_key="sk-one", **({"content_type": kind} if kind else {}))
        assert answer.status_code == 415, path
        assert JSON in answer.json()["error"]["message"]
    assert (through.provider.requests, through.store.sessions()) == ((), [])


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "application/json; charset=utf-8"},
        {"content_type": "Application/JSON"},
        {"host": "localhost:4141"},
        {"host": "agent.localhost"},
        {"host": "[::1]:9"},
        {"host": "Gateway.example.com:443"},
        {"origin": "https://app.example.com"},
        {"origin": "OURS"},
    ],
    ids=str,
)
def test_clients_and_what_an_operator_names_get_in(start: Starting, headers: dict[str, str]) -> None:
    through = start(hosts=("gateway.example.com",), origins=("https://app.example.com",))
    if headers.get("origin") == "OURS":
        headers = {"origin": through.url}
    named = {"content_type": JSON, "x_api_key": "sk-one", "anthropic_version": "2023-06-01"} | headers
    assert sent(through, **named).status_code == 200
    assert len(through.provider.requests) == 1


def test_paths_that_pass_through_untouched_take_any_content_type(start: Starting) -> None:
    through = start()
    sent(through, "/v1/files", x_api_key="sk-one", content_type="multipart/form-data; boundary=x")
    assert [seen.path for seen in through.provider.requests] == ["/v1/files"]


def test_redaction_knows_every_capability() -> None:
    drawn = [new_capability() for _ in range(5_000)]
    assert [each for each in drawn if each in conceal(f"http://127.0.0.1:40123/{each}/v1")] == []


def test_a_capability_opens_the_providers_routes_and_is_never_seen_again(
    start: Starting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    capability, path = new_capability(), tmp_path / "kept.db"
    store = SqliteStore(path)
    through = start(store=store, capability=capability)
    named = {"content_type": JSON, "x_api_key": "sk-one", "anthropic_version": "2023-06-01"}
    with caplog.at_level(logging.INFO, logger="lowwater.gateway"):
        spelled = "".join(f"%{ord(each):02x}" for each in capability)
        query = f"?beta=true&token={capability}&{spelled}=1&a=b"
        assert sent(through, f"/{capability}/v1/messages{query}", **named).status_code == 200
        for closed in (
            MESSAGES,
            f"/{new_capability()}/v1/messages",
            f"//{capability}/v1/messages",
            f"/{capability}/{capability}/v1/messages",
            f"/v1/messages/{capability}",
            f"/{capability}/metrics",
            f"/{capability}/healthz",
        ):
            assert sent(through, closed, **named).status_code == 403, closed
        assert eventually(lambda: len(caplog.messages) == 8)
    (seen,) = through.provider.requests
    assert seen.path == "/v1/messages?beta=true&a=b"
    assert capability not in f"{seen.headers} {seen.raw!r}"
    assert capability not in caplog.text
    store.close()
    assert not any(capability.encode() in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "stream"), [(400, False), (401, True), (429, False), (429, True), (500, False), (529, True)]
)
def test_what_a_provider_refuses_leaves_nothing_behind(start: Starting, status: int, stream: bool) -> None:
    def answer(seen: Seen) -> Answer:
        if b"planted" in seen.raw:
            return Fail(status=status, type="api_error", message="no")
        return Say(text="well")

    through = start(answer)
    first: list[Any] = [{"role": "user", "content": "hello"}]
    body = {"model": MODEL, "max_tokens": 9, "stream": stream}
    planted = {"role": "user", "content": "planted: recall this"}
    assert through.post(body | {"messages": [planted]}).status_code == status
    assert through.store.sessions() == [], "no session is begun"
    assert through.post(body | {"messages": first}).status_code == 200
    went_on = [*first, {"role": "assistant", "content": "well"}, planted]
    assert through.post(body | {"messages": went_on}).status_code == status
    (session,) = through.store.sessions()
    assert (session.turns, session.messages) == (1, 2)
    assert through.store.search("planted", limit=9) == []


def test_what_a_provider_accepts_is_kept_with_its_first_byte(start: Starting) -> None:
    through = start(lambda _: Say(text="well"))
    body = msgspec.json.decode(BODY) | {"stream": True}
    named = {"x-api-key": "sk-one", "anthropic-version": "2023-06-01"}
    with httpx2.stream("POST", through.url + MESSAGES, json=body, headers=named, timeout=60) as response:
        next(iter(response.iter_raw()))
        assert [hit.number for hit in through.store.search("door", limit=9)] == [1]
