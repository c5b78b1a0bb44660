"""An upstream that says the same to everybody, whatever it is: no provider would, but something that stands in for one may."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Canned:
    """What is said, and what was asked for."""

    def __init__(self) -> None:
        self.kind = "application/json"
        self.body = b""
        self.targets: list[str] = []
        self.url = ""


@contextmanager
def canned() -> Iterator[Canned]:
    """Serve on a free port until the block ends."""
    said = Canned()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", "0")))
            said.targets.append(self.path)
            self.send_response(200)
            self.send_header("content-type", said.kind)
            self.send_header("content-length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield said
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def raw_get(url: str, target: str) -> bytes:
    """Return the answer to a request whose target is written exactly so."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        got = b""
        while piece := connection.recv(65_536):
            got += piece
    return got
