"""A vLLM server is asked once for each view, and what it says of the prompt is read as scores."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from bench.likelihood.servers import Vllm


class Answering(BaseHTTPRequestHandler):
    """Says of each token of a prompt that it is as likely as its place; the likeliest is the token 7."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        self._say({"object": "list", "data": [{"id": "qwen", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        told: list[dict[str, Any] | None] = [None]
        for place, token in enumerate(body["prompt"][1:], start=1):
            rank = 1 if token == 7 else 2
            each = {str(token): {"logprob": -float(place), "rank": rank, "decoded_token": "x"}}
            if rank == 2:
                each["7"] = {"logprob": -0.1, "rank": 1, "decoded_token": "y"}
            told.append(each)
        self._say({"choices": [{"index": 0, "text": "x", "prompt_logprobs": told}]})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _say(self, body: object) -> None:
        sent = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


@pytest.fixture
def server() -> Iterator[str]:
    Answering.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as served:
        thread = Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/"
        served.shutdown()
        thread.join()


def test_the_tokens_of_the_action_are_read_off_the_prompt(server: str):
    scored = Vllm(server).score([1, 2, 3], [7, 9])
    assert scored.logs == [-3.0, -4.0]
    assert scored.hits == [True, False]
    assert [(each["model"], each["prompt"]) for each in Answering.asked] == [("qwen", [1, 2, 3, 7, 9])]


def test_nothing_is_sampled(server: str):
    Vllm(server).score([1, 2, 3], [7])
    assert Answering.asked[0]["max_tokens"] == 1
    assert Answering.asked[0]["temperature"] == 0
