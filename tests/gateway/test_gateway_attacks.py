"""What an attacker may cost: memory by a few bytes, time by many headers or files in one body, threads, and connections."""

import asyncio
import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack

import httpx2
import msgspec
import pytest

from lowwater.gateway.admission import COPIES, Admission
from lowwater.gateway.client_request import ClientRequest, UnreadRequest, read_client_request
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.relay import UndecodableBody, decompress, headers_by_name
from lowwater.gateway.turns import GatewayTurns, RequestContext
from lowwater.gateway.upstream import Refused
from tests.gateway.conftest import Starting, Through, eventually
from tests.gateway.test_gateway_fairness import BODY, connected, head_of

ZEROS = b'{"model":"m","max_tokens":5,"messages":[' + b"0," * 100_000 + b"0]}"


def peak_while(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (ZEROS, "more than 1,000 messages"),
        (b'{"model":"m",' + b'"a":0,' * 20_000 + b'"messages":[0]}', "more than 1,000 fields"),
        (b'{"model":"m","messages":[[' + b"{}," * 100_000 + b"{}]]}", "too many values"),
    ],
    ids=["messages", "fields", "values inside of messages"],
)
def test_what_is_in_a_body_is_counted_before_it_takes_memory(body: bytes, why: str) -> None:
    def read() -> None:
        assert read_client_request("/v1/messages", body, {}, most_messages=1_000) == UnreadRequest(why=why)

    assert peak_while(read) < 100_000


@pytest.mark.parametrize(
    "inside",
    [
        b'"' + b",[{" * 50 + b'"',
        rb'"\"' + b"," * 50 + b'"',
        b"[" + b"0," * 50 + b"0]",
        b'{"a":[[1,2],[3,4]],"b":"]"}',
    ],
    ids=["in a string", "after an escaped quote", "in a list", "nested"],
)
def test_only_messages_are_counted_and_each_of_them(inside: bytes) -> None:
    for count in (5, 6):
        body = b'{"model":"m","tools":[1,2,3,4],"messages":[' + b",".join([inside] * count) + b"]}"
        asked = read_client_request("/v1/messages", body, {}, most_messages=5)
        if count == 6:
            assert asked == UnreadRequest(why="more than 5 messages")
        else:
            assert isinstance(asked, ClientRequest)
            assert asked.raws == [inside] * 5


def test_unpacked_bytes_take_their_share_of_memory_while_they_are_unpacked(start: Starting) -> None:
    through = start(most_held_bytes=8_000_000)
    bomb = gzip.compress(b'{"model":"m","x":"' + b"a" * 60_000_000)
    assert len(bomb) < 70_000

    def refused() -> None:
        assert through.post(bomb, content_encoding="gzip").status_code == 503

    assert peak_while(refused) < 16_000_000
    assert through.provider.requests == ()
    odd = gzip.compress(b"{" + b" " * 1_000_000)
    assert through.post(odd, content_encoding="gzip").headers["x-lowwater-why"] == "not JSON"
    assert eventually(lambda: "\nlowwater_gateway_held_bytes 0" in httpx2.get(through.url + "/metrics").text)


def seconds_for(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def test_a_header_that_comes_very_often_is_joined_once() -> None:
    headers = [(b"A", b"b" * 25)] * 80_000
    assert seconds_for(lambda: headers_by_name(headers)) < 1
    assert headers_by_name([(b"A", b"1"), (b"b", b"2"), (b"a", b"3")]) == {"a": "1, 3", "b": "2"}


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /" + b"a" * 800_000,
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: " + b"a" * 800_000,
        b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"a: b\r\n" * 501 + b"\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx: "
        + b"a" * 800_000,
    ],
    ids=["URL", "one header", "many headers", "trailer"],
)
def test_a_head_has_an_end(start: Starting, endless: bytes) -> None:
    through = start(header_seconds=20)
    with connected(through.url) as client:
        got = b""
        try:
            client.sendall(endless)
            while piece := client.recv(65_536):
                got += piece
        except ConnectionError:
            pass
        else:
            assert b"HTTP/1.1 431" in got
        assert is_closed(client)
    headers = {f"x-{at}": "y" * 400 for at in range(400)}
    assert httpx2.get(through.url + "/", headers=headers).status_code == 200


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(65_536) == b""
    except ConnectionError:
        return True


def test_many_files_in_one_body_take_time_by_their_number_and_have_a_limit() -> None:
    def plain(packed: bytes) -> bytes:
        return b"".join(decompress(packed, "gzip"))

    one = gzip.compress(b"x" * 3_000_000)
    assert plain(one * 9) == b"x" * 27_000_000
    assert max(map(len, decompress(one, "gzip"))) <= 1 << 20

    def refused() -> None:
        with pytest.raises(UndecodableBody):
            plain(gzip.compress(b"") * 100_000)

    assert seconds_for(refused) < 2
    with pytest.raises(UndecodableBody):
        plain(one[:-1])


def test_counting_takes_only_its_client_s_threads_and_ends_with_its_client(
    start: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = start()
    done, running, most = threading.Event(), [], []
    counted = GatewayTurns.body_for_counting

    def slowly(self: GatewayTurns, asked: ClientRequest, place: RequestContext) -> bytes:
        running.append(1)
        most.append(len(running))
        done.wait(timeout=15)
        running.pop()
        return counted(self, asked, place)

    monkeypatch.setattr(GatewayTurns, "body_for_counting", slowly)
    raw = msgspec.json.encode(BODY)
    head = head_of(len(raw), "sk-greedy").replace(b"/v1/messages", b"/v1/messages/count_tokens")
    try:
        for _ in range(2):
            with ExitStack() as stack:
                for _ in range(12):
                    stack.enter_context(connected(through.url)).sendall(head + raw)
                assert eventually(lambda: len(running) == 8)
                assert through.post(BODY, x_api_key="sk-honest").status_code == 200
        assert eventually(lambda: under_way(through) == 0)
        assert (len(running), max(most)) == (8, 8), "threads are not given on before their work has ended"
    finally:
        done.set()
    assert eventually(lambda: not running)
    assert through.post(BODY, x_api_key="sk-greedy").status_code == 200


def under_way(through: Through) -> float:
    text = httpx2.get(through.url + "/metrics").text
    # The one that asks is one of them.
    return float(text.split("\nlowwater_gateway_under_way ")[1].split("\n")[0]) - 1


@pytest.mark.parametrize("trickle", [b"x", b"\r\n"], ids=["a refused body", "empty lines between requests"])
def test_a_connection_on_which_only_a_little_comes_is_closed(start: Starting, trickle: bytes) -> None:
    through = start(access_keys=("one",), header_seconds=0.4)
    first = head_of(60_000_000, "sk") if trickle == b"x" else b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with connected(through.url) as client:
        client.sendall(first)
        assert client.recv(65_536).startswith((b"HTTP/1.1 401", b"HTTP/1.1 200"))
        client.settimeout(0.05)

        def is_over() -> bool:
            try:
                client.sendall(trickle)
                return is_closed(client)
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        assert eventually(is_over, seconds=5)


def test_who_is_refused_may_send_the_rest_and_ask_again(start: Starting) -> None:
    through = start(access_keys=("one",), header_seconds=0.3)
    raw = msgspec.json.encode(BODY)
    with connected(through.url) as client:
        client.sendall(head_of(len(raw), "sk"))
        got = b""
        while not got.endswith(b"}"):
            got += client.recv(65_536)
        assert got.startswith(b"HTTP/1.1 401")
        client.sendall(raw)
        client.settimeout(0.6)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(30)
        client.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")


def test_stalled_bodies_with_made_up_keys_lose_their_memory_to_those_that_come(start: Starting) -> None:
    through = start(most_held_bytes=4_000_000)
    large = {**BODY, "messages": [{"role": "user", "content": "x" * 300_000}]}
    with ExitStack() as stack:
        for at in range(40):
            client = stack.enter_context(connected(through.url))
            client.sendall(head_of(900_000, f"sk-{at}") + b"x" * 60_000)
        assert eventually(lambda: held(through) > 3_000_000)
        assert eventually(lambda: through.post(large, x_api_key="sk-honest").status_code == 200, seconds=5)


def held(through: Through) -> float:
    text = httpx2.get(through.url + "/metrics").text
    return float(text.split("\nlowwater_gateway_held_bytes ")[1].split("\n")[0])


@pytest.mark.parametrize(("address", "most"), [("192.0.2.1", 50), ("127.0.0.1", 99), ("::1", 99)])
def test_one_address_holds_half_of_the_memory_whatever_its_keys(address: str, most: int) -> None:
    async def taken() -> int:
        admission = Admission(GatewayOptions(most_held_bytes=100 * COPIES))
        with ExitStack() as stack:
            for at in range(100):
                body = stack.enter_context(admission.receiving(f"key {at}", address))
                try:
                    body.reserve(1)
                except Refused:
                    break
            return admission.held_bytes // COPIES

    assert asyncio.run(taken()) >= most
    assert most == 99 or asyncio.run(taken()) == most


def test_nobody_is_counted_to_an_address_that_he_makes_up(start: Starting) -> None:
    through = start(most_held_bytes=4_000_000)
    with ExitStack() as stack:
        for at in range(3):
            head = head_of(900_000, "").replace(b"x-api-key: ", b"x-forwarded-for: 192.0.2.%d" % at)
            client = stack.enter_context(connected(through.url))
            client.sendall(head + b"x" * 400_000)
        assert eventually(lambda: held(through) > 1_500_000)
        assert held(through) <= 2_000_000, "half of it, as for one client"


@pytest.mark.parametrize("line", [b"POST http://evil.example/v1/messages", b"CONNECT evil.example:80"])
def test_a_target_with_a_host_in_it_is_refused(start: Starting, line: bytes) -> None:
    through = start()
    with connected(through.url) as client:
        client.sendall(head_of(2, "sk-any").replace(b"POST /v1/messages", line) + b"{}")
        assert client.recv(64).startswith(b"HTTP/1.1 400 ")
    assert through.provider.requests == ()
