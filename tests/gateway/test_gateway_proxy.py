"""A gateway behind a proxy of the company goes through it, and only where the environment says so."""

import socket
import threading

import pytest

from lowwater.gateway.upstream import proxy_for
from tests.gateway.conftest import MODEL, Starting


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.anthropic.com", "http://proxy:3128"),
        ("http://127.0.0.1:4000", None),
        ("https://inside.example", None),
    ],
    ids=["outside", "another scheme", "named as inside"],
)
def test_the_environment_says_what_goes_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: str | None
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for(url) == expected


def test_a_request_really_goes_through_it(monkeypatch: pytest.MonkeyPatch, start: Starting) -> None:
    asked: list[bytes] = []

    def proxy(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            asked.append(connection.recv(65_536))
            connection.sendall(b"HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n{}")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=proxy, args=(listening,), daemon=True)
        thread.start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listening.getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
        through = start(anthropic_upstream="http://provider.example")
        body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        assert through.post(body).status_code == 503
        thread.join()
    assert asked[0].startswith(b"POST http://provider.example/v1/messages")
