"""OpenAI's `/responses/compact` on loopback, as it is documented: the user's messages stay, the rest is one opaque item.

It runs inside the environment of a peer, so it needs nothing but Python.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from bench.peers.stand_in import StandIn

Items = list[dict[str, Any]]


class CompactEndpoint:
    """Serves from a thread of its own; the opaque item holds what the stand-in says."""

    def __init__(self, summariser: StandIn) -> None:
        self._summariser = summariser
        self._answered: dict[str, Items] = {}
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                answer = json.dumps(endpoint._compacted(json.loads(body))).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def base_url(self) -> str:
        """What the SDK takes as `base_url`."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def note(self, response: str, items: Items) -> None:
        """Remember the items that a response ends, as the provider does for those it stores."""
        self._answered[response] = items

    def _compacted(self, asked: dict[str, Any]) -> dict[str, Any]:
        before = self._answered.get(asked.get("previous_response_id") or "", [])
        items: Items = [*before, *(asked.get("input") or [])]
        text = self._summariser("\n".join(json.dumps(item) for item in items))
        kept = [item for item in items if item.get("role") == "user"]
        opaque = {"id": f"cmp_{len(text)}", "type": "compaction", "encrypted_content": text}
        usage = {
            "input_tokens": 0,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 0,
        }
        return {
            "id": "resp_compacted",
            "object": "response.compaction",
            "created_at": 0,
            "output": [*kept, opaque],
            "usage": usage,
        }
