"""Probes (temporary)."""

import json
import socket
import threading
from typing import Any

import httpx2
import pytest

from lowwater.testing.provider import Fail, Say, DropConnection
from tests.gateway.conftest import ANTHROPIC_TOOLS, MODEL, calls_a_tool, working
from tests.gateway.test_gateway_sessions import USER, ask, numbered, shape, token

ODD = [
    b"",
    b"null",
    b"[]",
    b"5",
    b"not json",
    b"\x1f\x8b\x08\x00abc",
    b'{"error":{"message":"x"}}',
    b'{"content":5}',
    b'{"content":[5]}',
    b'{"content":[{"type":5}]}',
    b'{"content":[{"type":"tool_use","input":{}}]}',
    b'{"choices":[]}',
    b'{"choices":[null]}',
    b'{"choices":[{"message":null}]}',
    b'{"choices":[{}]}',
    b'{"choices":[{"message":{"role":"assistant","tool_calls":[null]}}]}',
    b'{"output":[1]}',
    b'{"output":null}',
    b'{"output":[{"type":null}]}',
    b'{"content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":"x"}}',
    b'{"content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":-5,"output_tokens":99999999999999999999999}}',
    b'{"content":[],"usage":[]}',
    b'{"content":"text","role":"assistant"}',
    b'{"content":[{"type":"text","text":"\\ud800"}]}',
    b'{"content":[{"type":"tool_use","id":"a","name":"lowwater_search"}]}',
    b'{"content":[{"type":"tool_use","id":"a","name":"lowwater_search","input":5}],"stop_reason":"tool_use"}',
    b"[" * 3000,
]


class Canned:
    def __init__(self, kind: bytes):
        self.kind = kind
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.body = b""
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                c, _ = self.listening.accept()
            except OSError:
                return
            with c:
                got = b""
                while b"\r\n\r\n" not in got:
                    got += c.recv(65536)
                head, _, rest = got.partition(b"\r\n\r\n")
                import re

                m = re.search(rb"content-length: (\d+)", head.lower())
                n = int(m[1]) if m else 0
                while len(rest) < n:
                    rest += c.recv(65536)
                c.sendall(
                    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: "
                    + self.kind
                    + b"\r\ncontent-length: "
                    + str(len(self.body)).encode()
                    + b"\r\n\r\n"
                    + self.body
                )


@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_odd_whole(start: Any, path: str, recall: bool) -> None:
    up = Canned(b"application/json")
    t = start(anthropic_upstream=up.url, openai_upstream=up.url, recall=recall)
    bad = []
    for odd in ODD:
        up.body = odd
        b = {"model": MODEL, "max_tokens": 9, "stream": False, "tools": ANTHROPIC_TOOLS}
        b["input" if path == "/v1/responses" else "messages"] = [USER]
        a = t.post(b, path)
        if a.status_code != 200 or a.content != odd:
            bad.append((odd[:60], a.status_code, a.content[:100]))
    up.listening.close()
    assert not bad, "\n".join(map(str, bad))


EV = [
    b'data: {"error":{"message":"overloaded","code":502}}\n\n',
    b"data: not json\n\n",
    b"data: 5\n\n",
    b"data: {}\n\n",
    b'data: {"type":5}\n\n',
    b'data: {"choices":[null]}\n\n',
    b'data: {"choices":5}\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[null]}}]}\n\n',
    b'data: {"type":"content_block_start"}\n\n',
    b'data: {"type":"content_block_delta","index":"x"}\n\n',
    b'data: {"type":"response.output_item.added","output_index":0}\n\n',
    b'data: {"type":"response.failed","response":{"error":{"message":"x"}}}\n\n',
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
    b"data: [DONE]\n\n",
    b": keep\n\n",
    b"",
]


@pytest.mark.parametrize("recall", [False, True])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_odd_stream(start: Any, path: str, recall: bool) -> None:
    up = Canned(b"text/event-stream")
    t = start(anthropic_upstream=up.url, openai_upstream=up.url, recall=recall)
    bad = []
    for odd in EV:
        up.body = odd
        b = {"model": MODEL, "max_tokens": 9, "stream": True, "tools": ANTHROPIC_TOOLS}
        b["input" if path == "/v1/responses" else "messages"] = [USER]
        try:
            a = t.post(b, path)
            if a.status_code != 200 or a.content != odd:
                bad.append((odd[:60], a.status_code, a.content[:100]))
        except Exception as e:
            bad.append((odd[:60], repr(e)))
    up.listening.close()
    assert not bad, "\n".join(map(str, bad))


def test_fork_retries(start: Any) -> None:
    fails = {"n": 0}

    def script(seen: Any) -> Any:
        if seen.body["messages"][-1]["content"] == "instead" and fails["n"] < 3:
            fails["n"] += 1
            return Fail(status=429, type="rate_limit_error", message="slow")
        return numbered(seen)

    t = start(script)
    m: list[Any] = [USER]
    for turn in range(4):
        m += [ask(t, m), {"role": "user", "content": f"more {turn}"}]
    for _ in range(4):
        t.post(
            {
                "model": MODEL,
                "max_tokens": 9,
                "system": "s",
                "messages": [*m[:4], {"role": "user", "content": "instead"}],
            }
        )
    assert len(t.store.sessions()) == 2, shape(t)


def test_down_retries(start: Any) -> None:
    t = start([DropConnection(), DropConnection(), DropConnection(), Say(text="x")])
    for _ in range(4):
        t.post({"model": MODEL, "max_tokens": 9, "system": "s", "messages": [USER]})
    assert len(t.store.sessions()) == 1, shape(t)


def test_refused_connection(start: Any) -> None:
    t = start(anthropic_upstream="http://127.0.0.1:9")
    for _ in range(3):
        assert t.post({"model": MODEL, "max_tokens": 9, "system": "s", "messages": [USER]}).status_code == 502
    assert len(t.store.sessions()) == 1, shape(t)


def test_poison(start: Any) -> None:
    def script(seen: Any) -> Any:
        if seen.headers.get("x-api-key") == "sk-evil" and "poison" in json.dumps(seen.body):
            return Fail(
                status=400,
                type="invalid_request_error",
                message="messages.0.content.0.type: Input tag 'maximum context length is 9000 tokens' found",
            )
        return calls_a_tool(seen)

    t = start(script)
    t.post(
        {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "poison"}]},
        x_api_key="sk-evil",
    )
    working(t, 8, size=600)
    assert {s.compactions for s in t.store.sessions()} == {0}


def test_413(start: Any) -> None:
    n = {"n": 0}

    def script(seen: Any) -> Any:
        n["n"] += 1
        if n["n"] == 3:
            return Fail(
                status=413, type="request_too_large", message="Request exceeds the maximum number of bytes"
            )
        return calls_a_tool(seen)

    t = start(script)
    m = working(t, 2, size=100)
    t.post(
        {"model": MODEL, "max_tokens": 1000, "system": "You work.", "tools": ANTHROPIC_TOOLS, "messages": m}
    )
    working(t, 6, size=100)
    assert {s.compactions for s in t.store.sessions()} == {0}


def test_forged(start: Any) -> None:
    t = start(numbered)
    a = ask(t, [USER], x_api_key="", authorization=f"Bearer {token('ann', expires=1)}")
    ask(
        t,
        [USER, a, {"role": "user", "content": "x"}],
        x_api_key="sk-evil",
        authorization=f"Bearer {token('ann', expires=2)}",
    )
    assert len({s.about.source for s in t.store.sessions()}) == 2


def test_cache_key(start: Any) -> None:
    n = iter(range(99))
    t = start(lambda _: Say(text=f"reply {next(n)}"))
    talks: list[list[Any]] = [[{"role": "user", "content": "hi"}] for _ in range(2)]
    for turn in range(3):
        for i, talk in enumerate(talks):
            a = t.post(
                {"model": "gpt-5.5", "prompt_cache_key": "my-app", "messages": talk}, "/v1/chat/completions"
            ).json()
            assert "choices" in a, a
            talk += [a["choices"][0]["message"], {"role": "user", "content": f"{i} {turn}"}]
    assert shape(t) == [(3, 6), (3, 6)]


def test_query(start: Any) -> None:
    t = start()
    for target in ["/v1/models?x=a%20b&y=%2F%41", "/v1/files/a%2Fb%41", "/v1/x/../y"]:
        with socket.create_connection(("127.0.0.1", int(t.url.rsplit(":", 1)[1]))) as c:
            c.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            while c.recv(65536):
                pass
        assert t.provider.requests[-1].path == target


def test_gauge_and_count(start: Any) -> None:
    t = start(recall=True)
    b = {"model": MODEL, "messages": [USER], "tools": ANTHROPIC_TOOLS}
    n = t.post(b, "/v1/messages/count_tokens").json()["input_tokens"]
    u = t.post(b | {"max_tokens": 9}).json()["usage"]["input_tokens"]
    assert abs(n - u) <= 2, (n, u)
