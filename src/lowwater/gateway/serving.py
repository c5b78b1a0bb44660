"""Running a gateway: as a server of its own, or in a thread of another program."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lowwater.errors import BadSetting
from lowwater.gateway.app import Gateway

GRACE = 30
"""Seconds for answers under way when the server is told to stop."""
_WAITING = 2_048
"""Connections that may wait to be taken, as many as the server itself allows."""


def serve(gateway: Gateway, *, host: str, port: int, ready: Callable[[str], object] = lambda _: None) -> None:
    """Serve until told to stop by a signal; answers under way are finished first. `ready` is told the URL."""
    bound = bind(host, port)
    ready(_url(bound))
    uvicorn.Server(_config(gateway)).run(sockets=[bound])


@contextmanager
def served(gateway: Gateway, *, host: str = "127.0.0.1", port: int = 0, grace: int = 5) -> Iterator[str]:
    """Serve from a thread, on a free port if none is named, and hand out the URL."""
    bound = bind(host, port)
    server = _Server(_config(gateway, grace=grace))
    thread = Thread(
        target=lambda: asyncio.run(server.serve(sockets=[bound])), name="lowwater-gateway", daemon=True
    )
    thread.start()
    server.ready.wait(timeout=60)
    try:
        yield _url(bound)
    finally:
        server.should_exit = True
        thread.join()


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address, or raise a BadSetting that says why that cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host, port))
            # At once: who is told the URL may connect before the server has started, and waits.
            bound.listen(_WAITING)
        except BaseException:
            bound.close()
            raise
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadSetting(
            f"the gateway cannot listen on {host}:{port}: {why}; choose another --port or --host"
        ) from None
    return bound


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Impatient(HttpToolsProtocol):
    """Closes a connection on which the head of a request does not come in time: the first one, or the next."""

    seconds = 30.0
    _overdue: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """Wait for the rest of a head that has begun."""
        super().on_message_begin()
        if self._overdue is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """Wait no longer: the body has a time of its own."""
        self._wait_no_longer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._overdue = self.loop.call_later(self.seconds, self._give_up)

    def _wait_no_longer(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _give_up(self) -> None:
        self._overdue = None
        if not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()


_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def _config(gateway: Gateway, *, grace: int = GRACE) -> uvicorn.Config:
    impatient = type("_ImpatientAsAsked", (_Impatient,), {"seconds": gateway.header_seconds})
    return uvicorn.Config(
        gateway,
        http=impatient,
        lifespan="on",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=256 * 1024,
    )


class _Server(uvicorn.Server):
    """Says when it is ready; signals are the business of the program around it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        try:
            await super().startup(sockets=sockets)
        finally:
            self.ready.set()
