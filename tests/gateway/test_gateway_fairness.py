"""One client that misbehaves costs the others nothing: places, time, memory, and work that nobody waits for."""

import gc
import socket
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest

from lowwater.gateway.client_request import ClientRequest, read_client_request
from lowwater.gateway.open_sessions import OpenSessions
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.session_lookup import MessageCache
from lowwater.gateway.turns import GatewayTurns, RequestContext
from lowwater.session.dependencies import checked_while_counting
from lowwater.settings import CompressionSettings, Settings
from lowwater.stores.memory import MemoryStore
from tests.gateway.conftest import MODEL, Starting, Through, eventually

BODY: dict[str, Any] = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}


def connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    assert parts.hostname is not None
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=30)


def head_of(length: int, key: str) -> bytes:
    lines = ["POST /v1/messages HTTP/1.1", "host: 127.0.0.1", f"x-api-key: {key}"]
    lines += ["anthropic-version: 2023-06-01", "content-type: application/json", f"content-length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


@contextmanager
def slow_bodies(
    through: Through, keys: list[str], *, sent: bytes = b'{"model"', length: int = 9_000
) -> Iterator[None]:
    """Hold connections open on each of which a body has begun and does not go on."""
    with ExitStack() as stack:
        for key in keys:
            connection = stack.enter_context(connected(through.url))
            connection.sendall(head_of(length, key) + sent)
        yield


@pytest.mark.parametrize(
    "keys", [["sk-slow"] * 60, [f"sk-{at}" for at in range(60)]], ids=["of one client", "of as many clients"]
)
def test_slow_bodies_hold_nobody_up(start: Starting, keys: list[str]) -> None:
    through = start(most_requests=8)
    with slow_bodies(through, keys):
        for _ in range(10):
            assert through.post(BODY, x_api_key="sk-honest").status_code == 200
            assert through.post(BODY, x_api_key=keys[0]).status_code == 200


def test_half_sent_heads_are_closed_in_time_first_ones_and_later_ones(start: Starting) -> None:
    through = start(header_seconds=0.4)
    with ExitStack() as stack:
        silent, half, again = (stack.enter_context(connected(through.url)) for _ in range(3))
        half.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nx-slow")
        raw = msgspec.json.encode(BODY)
        again.sendall(head_of(len(raw), "sk-one") + raw)
        got = b""
        while b"\r\n\r\n" not in got or not got.endswith(b"}"):
            got += again.recv(65_536)
        again.sendall(b"GET / HTTP/1.1\r\nho")
        for connection in (silent, half, again):
            assert connection.recv(65_536).startswith(b"HTTP/1.1 408")
            assert connection.recv(65_536) == b"", "and then it is closed"


def test_a_body_that_takes_its_time_is_not_cut_off_by_the_limit_for_heads(start: Starting) -> None:
    through = start(header_seconds=0.2)
    raw = msgspec.json.encode(BODY)
    with connected(through.url) as client:
        client.sendall(head_of(len(raw), "sk-one") + raw[:9])
        assert eventually(lambda: through.post(BODY).status_code == 200, seconds=0.5)
        client.settimeout(0.4)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(30)
        client.sendall(raw[9:])
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")


def test_bodies_under_way_share_a_fixed_amount_of_memory(start: Starting) -> None:
    through = start(most_held_bytes=4_000_000)
    large = {**BODY, "messages": [{"role": "user", "content": "x" * 300_000}]}
    with slow_bodies(through, ["sk-slow"], sent=b'{"x":"' + b"x" * 450_000, length=900_000):
        held = "lowwater_gateway_held_bytes "

        def bytes_held() -> float:
            text = httpx2.get(through.url + "/metrics").text
            return float(text.split(f"\n{held}")[1].split("\n")[0])

        assert eventually(lambda: bytes_held() > 4 * 450_000)
        refused = through.post(large, x_api_key="sk-slow")
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error")
        smaller = {**BODY, "messages": [{"role": "user", "content": "x" * 200_000}]}
        assert through.post(smaller, x_api_key="sk-honest").status_code == 200
    assert eventually(lambda: bytes_held() == 0)


def many(count: int) -> dict[str, Any]:
    said = [{"role": ("user", "assistant")[at % 2], "content": f"say {at}"} for at in range(count)]
    return {"model": MODEL, "max_tokens": 9, "messages": [*said, {"role": "user", "content": "go"}]}


def test_a_list_of_too_many_messages_goes_on_as_it_came(start: Starting) -> None:
    through = start(most_messages=1_000)
    answer = through.post(many(1_000))
    assert answer.headers["x-lowwater-why"] == "more than 1,000 messages"
    assert through.provider.requests[-1].raw == answer.request.content
    assert list(through.store.sessions()) == []
    shorter = through.post(many(998))
    assert "x-lowwater-why" not in shorter.headers
    (session,) = through.store.sessions()
    assert (session.name, session.turns) == (shorter.headers["x-lowwater-session"], 1)


def test_open_sessions_are_bounded_by_their_messages() -> None:
    options = GatewayOptions(open_messages=1_000)
    sessions = OpenSessions(MemoryStore(), options)
    turns, place = GatewayTurns(sessions, options), RequestContext(tenant="x", base_url="http://a")
    for at in range(6):
        body = many(300)
        body["messages"][0] = {"role": "user", "content": f"conversation {at}"}
        asked = read_client_request("/v1/messages", msgspec.json.encode(body), {})
        assert isinstance(asked, ClientRequest)
        turn = turns.begin(asked, place)
        turns.accept(turn)
        turns.end(turn, None)
    assert 2 <= sessions.open <= 4


SMALL = Settings(compression=CompressionSettings(max_view_tokens=4_000, protect_last_n=4))


class Stopped(Exception):
    """Nobody waits any more."""


def test_work_can_be_stopped_in_the_middle_and_leaves_nothing_behind() -> None:
    store, options = MemoryStore(), GatewayOptions(settings=SMALL)
    turns, place = (
        GatewayTurns(OpenSessions(store, options), options),
        RequestContext(tenant="x", base_url="http://a"),
    )
    asked = read_client_request("/v1/messages", msgspec.json.encode(many(1_500)), {})
    assert isinstance(asked, ClientRequest)
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == last:
            raise Stopped

    last = 0
    with checked_while_counting(check):
        turns.body_for_counting(asked, place)
    whole = checks
    assert whole > 1_600, "it is checked again and again"
    for number in (1, 300, whole - 1):
        checks, last = 0, number
        with checked_while_counting(check), pytest.raises(Stopped):
            turns.begin(asked, place)
        assert all(session.turns == 0 and session.messages == 0 for session in store.sessions())
    assert turns.begin(asked, place).is_changed


@pytest.mark.full
def test_a_client_that_goes_away_takes_the_work_on_its_request_with_it(start: Starting) -> None:
    through = start(settings=SMALL)
    raw = msgspec.json.encode(many(19_000))

    def is_working() -> bool:
        frames = sys._current_frames().values()
        return any(_is_in(frame, "begin") for frame in frames)

    with connected(through.url) as client:
        client.sendall(head_of(len(raw), "sk-one") + raw)
        assert eventually(is_working)
    assert eventually(lambda: not is_working(), seconds=5)
    assert through.provider.requests == ()


def _is_in(frame: Any, name: str) -> bool:
    while frame is not None:
        if frame.f_code.co_name == name and frame.f_code.co_filename.endswith("gateway/turns.py"):
            return True
        frame = frame.f_back
    return False


def test_the_memory_of_decoded_messages_is_counted_in_full() -> None:
    def message(at: int) -> dict[str, Any]:
        if at % 2 == 0:
            return {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"t{at - 1}", "content": "x"}],
            }
        call = {"type": "tool_use", "id": f"t{at}", "name": "read", "input": {"at": at}}
        return {"role": "assistant", "content": [{"type": "text", "text": "hm"}, call]}

    raws = [msgspec.json.encode(message(at)) for at in range(4_000)]
    gc.collect()
    tracemalloc.start()
    remembering = MessageCache(1 << 40)
    remembering.read([bytes(bytearray(raw)) for raw in raws], "anthropic")
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.7 * remembering.size < taken < 1.1 * remembering.size
