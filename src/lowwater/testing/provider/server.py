"""A real HTTP server in a thread of its own, on a free port of the loopback interface."""

import asyncio
import socket
from threading import Event, Thread

import uvicorn
from starlette.types import ASGIApp

GRACE = 5
"""Seconds for answers under way when the server is stopped."""


class Server:
    """Serves an application from `start` until `stop`; both return when it is so."""

    def __init__(self, app: ASGIApp, stopping: asyncio.Event) -> None:
        # The protocol is spelled out because asyncio sends without delay only on sockets that name it.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self._socket.getsockname())
        config = uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="off", http="h11", ws="none", loop="asyncio"
        )
        self._uvicorn = _Uvicorn(config, stopping)
        self._thread = Thread(target=self._run, name="lowwater-provider", daemon=True)

    def start(self) -> None:
        """Start serving."""
        self._thread.start()
        self._uvicorn.ready.wait()
        if not self._uvicorn.started:
            raise RuntimeError("the provider could not start serving: see the error its thread printed")

    def stop(self) -> None:
        """Finish what is under way, close every connection and end the thread."""
        self._uvicorn.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._uvicorn.serve(sockets=[self._socket]))
        finally:
            self._uvicorn.ready.set()


class _Uvicorn(uvicorn.Server):
    """Says when it is ready, and waits for events where uvicorn looks every tenth of a second."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self.ready = Event()
        self._stopping = stopping
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - closed by asyncio
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            await asyncio.wait(set(self.server_state.tasks), timeout=GRACE)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        while self.server_state.connections:
            await asyncio.sleep(0)

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
