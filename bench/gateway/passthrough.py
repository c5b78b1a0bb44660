"""The least a proxy can do, on the gateway's own stack: read the body, send it on, pass the answer back."""

import argparse

import aiohttp
import uvicorn

from lowwater.gateway.relay import Receive, Scope, Send

_OWN = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection"})


class PassThrough:
    """Passes everything on, and knows nothing."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._client: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        pieces, more = [], True
        while more:
            message = await receive()
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name not in _OWN]
        assert self._client is not None
        async with self._client.request(
            scope["method"], self._upstream + scope["path"], headers=headers, data=b"".join(pieces)
        ) as response:
            back = [(name.lower(), value) for name, value in response.raw_headers if name.lower() not in _OWN]
            await send({"type": "http.response.start", "status": response.status, "headers": back})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._client = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
                )
                await send({"type": "lifespan.startup.complete"})
            else:
                assert self._client is not None
                await self._client.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True)
    given = parser.parse_args()
    uvicorn.run(PassThrough(given.upstream), host="127.0.0.1", port=given.port, log_level="error", ws="none")


if __name__ == "__main__":
    main()
