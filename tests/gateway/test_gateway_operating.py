"""What an operator sees: health, metrics, logs without contents, limits, and keys of the gateway's own."""

import logging
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from lowwater.errors import BadSetting
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import bind
from lowwater.stores.memory import MemoryStore
from lowwater.testing.provider import Provider
from tests.gateway.conftest import MODEL, Starting, eventually
from tests.gateway.serving import served_process

BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "the launch code is quillwort"}],
}


def test_health_tells_of_the_store(start: Starting) -> None:
    store = MemoryStore()
    through = start(store=store)
    assert httpx2.get(through.url + "/healthz").json() == {"status": "ok", "store": "ok"}
    store.close()
    unhealthy = httpx2.get(through.url + "/healthz")
    assert (unhealthy.status_code, unhealthy.json()["store"]) == (503, "unusable")
    assert through.provider.requests == (), "nobody else is asked"


def test_metrics_count_requests_and_turns(start: Starting) -> None:
    through = start()
    through.post(BODY)
    shown: list[str] = []

    def is_counted() -> bool:
        shown.append(httpx2.get(through.url + "/metrics").text)
        return 'lowwater_gateway_requests_total{path="/v1/messages",status="200"} 1.0' in shown[-1]

    assert eventually(is_counted)
    text = shown[-1]
    assert re.search(r"lowwater_gateway_first_byte_seconds_count [1-9]", text)
    assert 'model="claude-opus-4-5"' in text
    assert "quillwort" not in text


def test_a_log_line_has_figures_and_neither_contents_nor_keys(
    start: Starting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    through = start()
    through.post(BODY, x_api_key="sk-very-secret")

    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "lowwater.gateway"]

    assert eventually(lines)
    told = msgspec.json.decode(lines()[0])
    assert (told["status"], told["path"], told["changed"]) == (200, "/v1/messages", False)
    assert told["request_bytes"] > 50
    everything = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith("httpx")
    )
    assert "quillwort" not in everything
    assert "sk-very-secret" not in everything


def test_a_body_that_is_too_large_is_refused_in_the_clients_words(start: Starting) -> None:
    through = start(most_bytes=1_000)
    answer = through.post({**BODY, "messages": [{"role": "user", "content": "x" * 2_000}]})
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"
    chat = through.post(b"x" * 2_000, "/v1/chat/completions")
    assert "1,000 bytes" in chat.json()["error"]["message"]
    assert through.provider.requests == ()


def test_without_a_key_there_is_no_way_through_if_one_is_required(start: Starting) -> None:
    through = start(require_key=True)
    for told in ("", "Bearer", "bearer, Bearer", "Basic", "Token"):
        refused = httpx2.post(through.url + "/v1/messages", json=BODY, headers={"authorization": told})
        assert (refused.status_code, through.provider.requests) == (401, ()), told
    assert through.post(BODY).status_code == 200


def test_the_gateways_own_keys_are_asked_for_and_go_no_further(start: Starting) -> None:
    through = start(require_key=True, access_keys=("gate-1", "gate-2"))
    assert through.post(BODY).status_code == 401
    assert through.post(BODY, x_lowwater_key="gate-3").status_code == 401
    assert through.post(BODY, x_lowwater_key="gate-2").status_code == 200
    assert "x-lowwater-key" not in through.provider.requests[-1].headers
    assert httpx2.get(through.url + "/healthz").status_code == 200


def test_a_provider_that_cannot_be_reached_is_one_sentence(start: Starting) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
    through = start(anthropic_upstream=nobody)
    answer = through.post(BODY)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"].startswith("the provider could not be reached")


def test_an_upstream_may_be_named_with_or_without_its_version(start: Starting) -> None:
    through = start()
    versioned = start(
        provider=through.provider,
        openai_upstream=through.provider.openai_base_url,
        anthropic_upstream=through.provider.openai_base_url + "/",
    )
    assert versioned.post(BODY).status_code == 200
    chat = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "x"}]}
    assert versioned.post(chat, "/v1/chat/completions", authorization="Bearer k").status_code == 200
    assert [seen.path for seen in through.provider.requests] == ["/v1/messages", "/v1/chat/completions"]


def test_what_cannot_be_listened_on_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadSetting, match=r"cannot listen on 127.0.0.1:\d+: .*choose another --port"):
            bind("127.0.0.1", taken.getsockname()[1])


def test_who_is_told_the_address_may_connect_before_the_server_has_started() -> None:
    with bind("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname(), timeout=5):
        pass


def test_an_upstream_that_is_no_url_is_refused() -> None:
    with pytest.raises(BadSetting, match="must begin with http"):
        GatewayOptions(anthropic_upstream="api.anthropic.com")


def serving(*arguments: str, keys: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lowwater", "serve", "--port", "0", *arguments],
        env={**os.environ, "LOWWATER_GATEWAY_KEYS": keys},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", ""])
def test_an_address_that_others_can_reach_is_refused_without_keys(host: str, tmp_path: Path) -> None:
    done = serving("--host", host, "--store", f"sqlite:///{tmp_path}/kept.db")
    assert done.returncode == 1
    assert "LOWWATER_GATEWAY_KEYS names no keys" in done.stderr
    assert "--open-to-all" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("keys", "options", "status"),
    [
        ("one,two", (), 401),
        ("one,two", ("--host", "0.0.0.0"), 401),
        ("", ("--open-to-all", "--host", "0.0.0.0"), 200),
    ],
    ids=["keys", "keys, for all", "insisted on"],
)
def test_keys_in_the_environment_are_asked_for_without_a_second_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, options: tuple[str, ...], status: int
) -> None:
    monkeypatch.setenv("LOWWATER_GATEWAY_KEYS", keys)
    store = f"sqlite:///{tmp_path}/kept.db"
    with (
        Provider() as provider,
        served_process(provider.anthropic_base_url, store, "--no-log", *options) as gateway,
    ):
        url = gateway.url.replace("0.0.0.0", "127.0.0.1") + "/v1/messages"
        body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
        named = {"x-api-key": "sk-one", "anthropic-version": "2023-06-01"}
        assert httpx2.post(url, json=body, headers=named).status_code == status
        assert httpx2.post(url, json=body, headers=named | {"x-lowwater-key": "two"}).status_code == 200
