"""Runs a gateway: as a server of its own, or in a thread of another program."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Protocol

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lowwater.errors import BadSetting
from lowwater.gateway.relay import Receive, Scope, Send


class Application(Protocol):
    """What can be served: a gateway, or the dashboard alone."""

    @property
    def header_seconds(self) -> float:
        """How long a client may take to send the head of a request."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the server's start and end."""
        ...

    def end_streams(self) -> None:
        """End the streams that would go on for ever, now that the server stops."""
        ...


GRACE = 30
"""Seconds that answers under way get when the server is told to stop."""
_BACKLOG = 2_048
"""Connections that may wait to be accepted; uvicorn's own default."""
_MOST_HEAD_BYTES = 256 * 1024
"""Bytes that a request's head may have, and anything else that is not part of a body."""
_MOST_HEADERS = 500


def serve(app: Application, *, host: str, port: int, ready: Callable[[str], object] = lambda _: None) -> None:
    """Serve until a signal stops it, finishing answers under way first; `ready` is called with the URL."""
    bound = bind(host, port)
    ready(_url(bound))
    _EndingServer(_config(app), app).run(sockets=[bound])


@contextmanager
def served(app: Application, *, host: str = "127.0.0.1", port: int = 0, grace: int = 5) -> Iterator[str]:
    """Serve from a thread, on a free port if none is given; yields the URL."""
    bound = bind(host, port)
    server = _Server(_config(app, grace=grace), app)
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
    """Return a socket that listens on an address, or raise a BadSetting that says why that is impossible."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            # On Windows, SO_REUSEADDR would let two programs listen on one port.
            option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
            bound.bind((host, port))
            # Listen already: a client that gets the URL before the server has started then waits instead of failing.
            bound.listen(_BACKLOG)
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


class _StrictProtocol(HttpToolsProtocol):
    """Closes a connection if the head of a request does not come in time or is too large.

    A client that was answered before its body was complete may go on sending for the same time, so that it can read the answer.
    """

    seconds = 30.0
    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    """Bytes since the last piece of a body or the end of a request."""
    _in_body = False
    _is_too_large = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the deadline for the first request."""
        super().connection_made(transport)
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        """Read on; anything that comes between two requests, even empty lines, starts the deadline for a head."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > _MOST_HEAD_BYTES:
            self._refuse_head()
        elif self._is_answered and self._deadline is None and self.timeout_keep_alive_task is None:
            self._start_deadline()

    @property
    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete and not self.pipeline

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, unless there are too many."""
        super().on_header(name, value)
        if len(self.headers) > _MOST_HEADERS:
            self._is_too_large = True
            raise ValueError("too many headers")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too large a head."""
        if self._is_too_large:
            self._refuse_head()
        else:
            super().send_400_response(msg)

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request if this one was answered before it was complete."""
        self._head_bytes, self._in_body = 0, False
        super().on_message_complete()
        if self._is_answered:
            self._clear_deadline()
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        """Start a deadline for the rest of a body that nobody reads any more."""
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last and self._in_body and self._deadline is None and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self._start_deadline()

    def on_message_begin(self) -> None:
        """Start the deadline for the rest of a head."""
        super().on_message_begin()
        if self._deadline is None:
            self._start_deadline()

    def on_headers_complete(self) -> None:
        """Clear the deadline: the body has one of its own."""
        if not self.url.startswith((b"/", b"*")):
            # The absolute form, as sent to a proxy: the host in it would bypass the check of `Host`.
            raise ValueError("a target with a host in it")
        self._clear_deadline()
        self._head_bytes, self._in_body = 0, True
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clear the deadline."""
        self._clear_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.seconds, self._time_out)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            if not self._in_body:
                self.transport.write(_refusal(b"408 Request Timeout"))
            self.transport.close()

    def _refuse_head(self) -> None:
        self.transport.write(_refusal(b"431 Request Header Fields Too Large"))
        self.transport.close()


def _refusal(status: bytes) -> bytes:
    return b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def _config(app: Application, *, grace: int = GRACE) -> uvicorn.Config:
    protocol = type("_GatewayProtocol", (_StrictProtocol,), {"seconds": app.header_seconds})
    return uvicorn.Config(
        app,
        http=protocol,
        lifespan="on",
        # Any client can send X-Forwarded-For and claim to be another.
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


class _EndingServer(uvicorn.Server):
    """Ends the application's endless streams before it waits for answers under way."""

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, with streams ended first."""
        self._app.end_streams()
        await super().shutdown(sockets=sockets)


class _Server(_EndingServer):
    """Tells when it is ready, and leaves signals to the program around it."""

    def __init__(self, config: uvicorn.Config, app: Application) -> None:
        super().__init__(config, app)
        self.ready = Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not handle signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve."""
        try:
            await super().startup(sockets=sockets)
        finally:
            self.ready.set()
