"""What goes wrong around a gateway: requests fail cleanly or succeed, nothing is lost, nothing leaks."""

import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest

from lowwater.stores.addresses import open_store
from lowwater.testing.postgres import restartable_server
from lowwater.testing.provider import DropConnection, Hang, Provider, Say
from tests.gateway.conftest import MODEL, Starting
from tests.gateway.serving import served_process

HEADERS = {"x-api-key": "sk-one", "anthropic-version": "2023-06-01", "content-type": "application/json"}


def body(*said: str, stream: bool = False, size: int = 1) -> dict[str, Any]:
    """Return a request with these texts by turns."""
    messages = [
        {"role": ("user", "assistant")[index % 2], "content": text * size} for index, text in enumerate(said)
    ]
    return {"model": MODEL, "max_tokens": 99, "stream": stream, "messages": messages}


def ask(url: str, *said: str, **options: Any) -> httpx2.Response:
    return httpx2.post(f"{url}/v1/messages", json=body(*said, **options), headers=HEADERS, timeout=60)


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=30)


def head_of(length: int) -> bytes:
    lines = [
        "POST /v1/messages HTTP/1.1",
        "host: localhost",
        *(f"{name}: {value}" for name, value in HEADERS.items()),
    ]
    return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_provider_that_dies_in_the_middle_of_an_answer(start: Starting, stream: bool) -> None:
    through = start([Say(text="one"), DropConnection()])
    ask(through.url, "a")
    if stream:
        with pytest.raises(httpx2.RemoteProtocolError):
            ask(through.url, "a", "one", "b", stream=True)
    else:
        answer = ask(through.url, "a", "one", "b")
        assert answer.status_code == 502
        assert "could not be reached" in answer.json()["error"]["message"]
    assert ask(through.url, "a", "one", "b").status_code == 200, "the same request succeeds later"
    (session,) = through.store.sessions()
    assert (session.turns, session.messages) == (2, 4)


def test_a_client_that_sends_its_body_drop_by_drop_is_cut_off_and_holds_nobody_up(start: Starting) -> None:
    through = start(body_seconds=0.3)
    with connected(through.url) as slow:
        slow.sendall(head_of(1_000) + b'{"model"')
        assert ask(through.url, "hello").status_code == 200
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_a_client_that_half_closes_gets_its_answer_or_a_closed_connection(start: Starting) -> None:
    through = start()
    raw = msgspec.json.encode(body("hello"))
    with connected(through.url) as half:
        half.sendall(head_of(len(raw)) + raw)
        half.shutdown(socket.SHUT_WR)
        got = b""
        while piece := half.recv(65_536):
            got += piece
    assert got == b"" or got.startswith(b"HTTP/1.1 200")
    assert ask(through.url, "hello").status_code == 200


def test_a_client_that_goes_away_takes_its_request_with_it(start: Starting) -> None:
    gone, begun = threading.Event(), threading.Event()

    def upstream(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(30)
            connection.recv(65_536)
            begun.set()
            while connection.recv(65_536):
                pass
            gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=upstream, args=(listening,), daemon=True)
        thread.start()
        through = start(anthropic_upstream=f"http://127.0.0.1:{listening.getsockname()[1]}")
        raw = msgspec.json.encode(body("hello"))
        with connected(through.url) as client:
            client.sendall(head_of(len(raw)) + raw)
            assert begun.wait(30)
        assert gone.wait(30), "the provider's connection is closed too"
        thread.join()


def test_a_replica_that_is_killed_in_the_middle_of_a_turn_loses_nothing(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    answers: list[Any] = [Say(text="one"), Hang()]
    with Provider(answers) as provider:
        with served_process(provider.anthropic_base_url, store) as first:
            assert ask(first.url, "a").status_code == 200
            raw = msgspec.json.encode(body("a", "one", "b"))
            with connected(first.url) as client:
                client.sendall(head_of(len(raw)) + raw)
                while len(provider.requests) < 2:
                    pass
                first.kill()
        with served_process(provider.anthropic_base_url, store) as second:
            assert ask(second.url, "a", "one", "b").status_code == 200
    opened = open_store(store)
    (session,) = opened.sessions()
    assert (session.turns, session.messages) == (2, 4)
    opened.close()


def test_a_database_that_is_restarted_comes_back(start: Starting) -> None:
    with restartable_server() as server:
        store = open_store(server.address)
        through = start(lambda _: Say(text="one"), store=store)
        assert ask(through.url, "a").status_code == 200
        server.stop()
        assert httpx2.get(f"{through.url}/healthz", timeout=60).status_code == 503
        during = ask(through.url, "a", "one", "b")
        assert during.status_code == 200, "nothing was compacted: the client's own list is as good as any"
        assert through.provider.requests[-1].raw == during.request.content
        server.start()
        assert httpx2.get(f"{through.url}/healthz", timeout=60).status_code == 200
        assert ask(through.url, "a", "one", "b", "one", "c").status_code == 200
        (session,) = store.sessions()
        assert (session.turns, session.messages) == (3, 6), "what was answered meanwhile is billed too"
        store.close()


def test_a_full_disk_stops_nobody(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/kept.db"
    with (
        Provider(lambda _: Say(text="one")) as provider,
        served_process(provider.anthropic_base_url, store, file_limit=600_000) as served,
    ):
        said = ["a " * 20]
        statuses = []
        for turn in range(12):
            answer = ask(served.url, *said)
            statuses.append(answer.status_code)
            said += ["one", f"{turn} " * 20_000]
        assert statuses == [200] * 12
        assert httpx2.get(f"{served.url}/healthz").status_code in {200, 503}
    opened = open_store(store)
    (session,) = opened.sessions()
    texts = [one.message.text for one in opened.messages(session.name, 1, 99, version=session.version)]
    assert texts == said[: len(texts)], "what was kept is whole"
    opened.close()
