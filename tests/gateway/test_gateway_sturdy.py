"""What was done to each request is told; compressed bodies are read; bills outlive the database; chunks outlive the provider."""

import asyncio
import gzip
import socket
import threading
import zlib
from contextlib import suppress
from typing import Any

import aiohttp
import httpx2
import msgspec
import pytest

from lowwater.gateway.admission import Shares
from lowwater.gateway.app import Gateway
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.relay import response_chunks
from lowwater.gateway.server import served
from lowwater.settings import CompressionSettings, Settings
from lowwater.stores.addresses import open_store
from lowwater.stores.memory import MemoryStore
from lowwater.testing.postgres import restartable_server
from lowwater.testing.provider import Fail, Say
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, Starting, calls_a_tool, eventually, working

HEADERS = {"x-api-key": "sk-one", "anthropic-version": "2023-06-01", "content-type": "application/json"}
SMALL = Settings(compression=CompressionSettings(max_view_tokens=8_000, protect_last_n=4))


def body(*said: str, **fields: Any) -> bytes:
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    return msgspec.json.encode({"model": MODEL, "max_tokens": 99, "messages": messages, **fields})


def zstd(data: bytes) -> bytes:
    package = pytest.importorskip("zstandard")
    packed: bytes = package.ZstdCompressor().compress(data)
    return packed


def brotli(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("brotli", minversion="1.2").compress(data)
    return packed


def raw_deflate(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(data) + packing.flush()


CODINGS = [
    pytest.param("gzip", gzip.compress, id="gzip"),
    pytest.param("deflate", zlib.compress, id="deflate"),
    pytest.param("deflate", raw_deflate, id="deflate without its frame"),
    pytest.param("zstd", zstd, id="zstd"),
    pytest.param("br", brotli, id="br"),
]


@pytest.mark.parametrize(("coding", "packed"), CODINGS)
def test_a_compressed_body_is_read_and_leaves_as_it_came(start: Starting, coding: str, packed: Any) -> None:
    through = start()
    sent = packed(body("hello"))
    answer = through.post(sent, content_encoding=coding)
    seen = through.provider.requests[-1]
    assert (seen.raw, seen.headers["content-encoding"]) == (sent, coding)
    assert answer.headers["x-lowwater-request"] == "unchanged"
    assert int(answer.headers["x-lowwater-tokens"]) > 0, "it was understood"


def test_a_compressed_body_that_is_compacted_leaves_plain(start: Starting) -> None:
    through = start(calls_a_tool, settings=SMALL)
    messages = working(through, 4)
    raw = msgspec.json.encode(
        {
            "model": MODEL,
            "max_tokens": 1_000,
            "system": "You work.",
            "tools": ANTHROPIC_TOOLS,
            "messages": messages,
        }
    )
    answer = through.post(gzip.compress(raw), content_encoding="gzip")
    seen = through.provider.requests[-1]
    assert answer.status_code == 200, answer.text
    assert "content-encoding" not in seen.headers
    assert len(seen.raw) < len(raw)
    assert answer.headers["x-lowwater-request"] == "changed"


@pytest.mark.parametrize(("coding", "packed"), CODINGS)
def test_a_bomb_is_refused_and_never_unpacked(start: Starting, coding: str, packed: Any) -> None:
    through = start(most_bytes=1_000_000)
    answer = through.post(packed(b" " * 50_000_000), content_encoding=coding)
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")
    assert through.provider.requests == ()


@pytest.mark.parametrize(
    ("coding", "sent"),
    [("gzip", gzip.compress(body("hello"))[:-9]), ("gzip", b"none"), ("rot13", body("hello"))],
    ids=["cut short", "not compressed", "unknown"],
)
def test_what_cannot_be_unpacked_goes_on_as_it_came(start: Starting, coding: str, sent: bytes) -> None:
    through = start()
    answer = through.post(sent, content_encoding=coding)
    assert through.provider.requests[-1].raw == sent
    assert answer.headers["x-lowwater-request"] == "passed-on"
    assert "compressed" in answer.headers["x-lowwater-why"]


def test_the_answer_and_the_metrics_say_what_was_done(start: Starting) -> None:
    through = start(calls_a_tool, settings=SMALL)
    first = through.post(body("hello"))
    assert first.headers["x-lowwater-request"] == "unchanged"
    assert first.headers["x-lowwater-session"] in {each.name for each in through.store.sessions()}
    assert int(first.headers["x-lowwater-tokens"]) > 0
    assert first.headers["x-lowwater-decision"]
    working(through, 5, key="sk-two")
    odd = through.post(b'{"model": "x", "messages": "none"}')
    assert (odd.headers["x-lowwater-request"], odd.headers["x-lowwater-why"]) == (
        "passed-on",
        "no list of messages",
    )
    assert "x-lowwater-request" not in httpx2.get(through.url + "/v1/models", headers=HEADERS).headers

    def told() -> bool:
        text = httpx2.get(through.url + "/metrics").text
        kinds = ('did="unchanged"', 'did="changed"', 'did="passed-on"')
        return all("lowwater_gateway_conversations_total{" in text and kind in text for kind in kinds)

    assert eventually(told)


def test_the_answer_tells_of_what_was_sent_after_a_refusal(start: Starting) -> None:
    through = start(lambda _: Say(text="well"), default_context=12_000)
    answer = through.post(body(*(f"line {at} of the file\n" * 100 for at in range(41))))
    assert answer.status_code == 200, answer.text
    refused, sent = through.provider.requests
    assert refused.refusal is not None
    assert len(sent.raw) < len(refused.raw)
    assert answer.headers["x-lowwater-request"] == "changed"
    assert int(answer.headers["x-lowwater-tokens"]) <= 12_000
    assert "wall" in answer.headers["x-lowwater-decision"]
    assert eventually(lambda: 'did="changed"' in httpx2.get(through.url + "/metrics").text)


def test_count_tokens_counts_what_would_be_sent(start: Starting) -> None:
    through = start(calls_a_tool, settings=SMALL)
    differing = 0
    for turns in (3, 4, 5):
        messages = working(through, turns, key=f"sk-{turns}")
        asked = {"model": MODEL, "system": "You work.", "tools": ANTHROPIC_TOOLS, "messages": messages}
        counted = through.post(asked, "/v1/messages/count_tokens", x_api_key=f"sk-{turns}").json()[
            "input_tokens"
        ]
        again = through.post(asked, "/v1/messages/count_tokens", x_api_key=f"sk-{turns}").json()[
            "input_tokens"
        ]
        assert again == counted, "counting leaves nothing behind"
        answer = through.post({**asked, "max_tokens": 1_000}, x_api_key=f"sk-{turns}")
        usage = answer.json()["usage"]
        sent = sum(usage.get(name) or 0 for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))  # fmt: skip
        assert counted == sent
        differing += answer.headers["x-lowwater-request"] == "changed"
    assert differing, "some were compacted"


def test_count_tokens_of_a_new_list_is_of_what_would_be_sent_too(start: Starting) -> None:
    through = start(settings=SMALL)
    said = [f"{at} " * 3_000 for at in range(9)]
    counted = through.post(body(*said), "/v1/messages/count_tokens").json()["input_tokens"]
    assert list(through.store.sessions()) == []
    usage = through.post(body(*said)).json()["usage"]
    assert counted == usage["input_tokens"] + (usage.get("cache_creation_input_tokens") or 0)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_bills_survive_an_outage_of_the_database(start: Starting, stream: bool) -> None:
    with restartable_server() as server:
        store = open_store(server.address)

        def answers(seen: Any) -> Say:
            if len(seen.body["messages"]) == 3:
                server.stop()
            return Say(text="one")

        through = start(answers, store=store)
        assert through.post(body("a", stream=stream)).status_code == 200
        assert through.post(body("a", "one", "b", stream=stream)).status_code == 200, "it died in the middle"
        assert through.post(body("a", "one", "b", "one", "c", stream=stream)).status_code == 200
        assert "lowwater_gateway_bills_waiting 2.0" in httpx2.get(through.url + "/metrics").text
        server.start()
        # The last is billed late by itself, or with the next request.
        assert eventually(
            lambda: "lowwater_gateway_bills_waiting 0.0" in httpx2.get(through.url + "/metrics").text
        )
        (session,) = store.sessions()
        assert (session.turns, session.messages) == (3, 6)
        assert 'lowwater_gateway_bills_total{became="late"} 2.0' in httpx2.get(through.url + "/metrics").text
        store.close()


def test_a_redirect_during_an_outage_is_no_answer_that_is_billed_later(start: Starting) -> None:
    with restartable_server() as server:
        store = open_store(server.address)
        through = start([Fail(status=307, type="api_error", message="over there")], store=store)
        server.stop()
        assert through.post(body("a")).status_code == 307
        assert "lowwater_gateway_bills_waiting 0.0" in httpx2.get(through.url + "/metrics").text
        server.start()
        store.close()


def test_chunks_that_came_before_a_provider_died_are_delivered() -> None:
    """Its reader is busy with the first chunk when the second and the end of the connection come."""
    is_busy = asyncio.Event()

    async def provider(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
        await is_busy.wait()
        writer.write(b"3\r\ntwo\r\n")
        writer.close()

    async def work() -> list[bytes]:
        server = await asyncio.start_server(provider, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        got: list[bytes] = []
        async with server, aiohttp.ClientSession() as client:
            response = await client.get(f"http://127.0.0.1:{port}/")
            with suppress(aiohttp.ClientPayloadError):
                async for chunk in response_chunks(response):
                    got.append(chunk)
                    is_busy.set()
                    while response.content.exception() is None:
                        await asyncio.sleep(0)
            response.close()
        return got

    assert asyncio.run(asyncio.wait_for(work(), 30)) == [b"one", b"two"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_a_stream_that_breaks_off_arrives_up_to_there(path: str) -> None:
    event = b"data: " + msgspec.json.encode({"type": "response.in_progress"}) + b"\n\n"

    def upstream(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            connection.sendall(head + b"%x\r\n" % (3 * len(event)) + 3 * event + b"\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=upstream, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        options = GatewayOptions(anthropic_upstream=url, openai_upstream=url)
        with served(Gateway(options, MemoryStore())) as gateway:
            listed = {"messages" if path == "/v1/messages" else "input": [{"role": "user", "content": "hi"}]}
            asked = {"model": MODEL, "max_tokens": 9, "stream": True, **listed}
            raw, got = msgspec.json.encode(asked), b""
            host, _, port = gateway.removeprefix("http://").partition(":")
            lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"content-length: {len(raw)}"]
            lines += [f"{name}: {value}" for name, value in HEADERS.items()]
            with socket.create_connection((host, int(port)), timeout=30) as client:
                client.sendall("\r\n".join([*lines, "", ""]).encode() + raw)
                while piece := client.recv(65_536):
                    got += piece
    assert got.count(event) == 3


def test_a_share_leaves_room_for_others() -> None:
    shares = Shares(12)
    taken = {"one": 0, "two": 0}
    for client in taken:
        while shares.refusal(client) is None:
            shares.take(client)
            taken[client] += 1
    assert taken == {"one": 6, "two": 3}
    refused = shares.refusal("one")
    assert refused is not None
    assert refused.status == 429
    assert shares.refusal("three") is None
    for _ in range(6):
        shares.give_back("one")
    assert shares.refusal("two") is None
