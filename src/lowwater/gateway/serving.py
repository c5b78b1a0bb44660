"""Running a gateway: as a server of its own, or in a thread of another program."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import uvicorn

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


def _config(gateway: Gateway, *, grace: int = GRACE) -> uvicorn.Config:
    return uvicorn.Config(
        gateway,
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
