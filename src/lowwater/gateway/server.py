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
_MOST_HEAD = 256 * 1024
"""Bytes of a request's head, and of anything else that is not part of a body."""
_MOST_HEADERS = 500


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
    """Closes a connection on which the head of a request does not come in time or is too large: the first one, or the next.

    A client that was answered before its body was there may go on sending for as long, so that it gets to read the answer.
    """

    seconds = 30.0
    _overdue: asyncio.TimerHandle | None = None
    _bodiless = 0
    """Bytes that came since the last piece of a body, or the end of a request."""
    _in_body = False
    _is_large = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read on; whatever comes between two requests begins the wait for a head, empty lines as well."""
        self._bodiless += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._bodiless > _MOST_HEAD:
            self._refuse_head()
        elif self._is_answered and self._overdue is None and self.timeout_keep_alive_task is None:
            self._wait()

    @property
    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete and not self.pipeline

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take note of a header, unless there are too many."""
        super().on_header(name, value)
        if len(self.headers) > _MOST_HEADERS:
            self._is_large = True
            raise ValueError("too many headers")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or has too large a head."""
        if self._is_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._bodiless = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request if this one was answered before all of it was there."""
        self._bodiless, self._in_body = 0, False
        super().on_message_complete()
        if self._is_answered:
            self._wait_no_longer()
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that nobody reads any more, but not for long."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self._in_body and self._overdue is None and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._wait()

    def on_message_begin(self) -> None:
        """Wait for the rest of a head that has begun."""
        super().on_message_begin()
        if self._overdue is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """Wait no longer: the body has a time of its own."""
        if not self.url.startswith((b"/", b"*")):
            # A proxy's form of a target: the host in it would be believed by nobody and checked by nobody.
            raise ValueError("a target with a host in it")
        self._wait_no_longer()
        self._bodiless, self._in_body = 0, True
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
            if not self._in_body:
                self.transport.write(_refusal(b"408 Request Timeout"))
            self.transport.close()

    def _refuse_head(self) -> None:
        self.transport.write(_refusal(b"431 Request Header Fields Too Large"))
        self.transport.close()


def _refusal(status: bytes) -> bytes:
    return b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def _config(gateway: Gateway, *, grace: int = GRACE) -> uvicorn.Config:
    impatient = type("_ImpatientAsAsked", (_Impatient,), {"seconds": gateway.header_seconds})
    return uvicorn.Config(
        gateway,
        http=impatient,
        lifespan="on",
        # Anybody may write that a request was forwarded for somebody else.
        proxy_headers=False,
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
