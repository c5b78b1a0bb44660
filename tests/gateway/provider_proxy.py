"""The providers' own addresses for real clients: a proxy that answers for every host in the name of a local provider.

A client that goes straight to `https://api.anthropic.com` may behave unlike one that was given another URL. Here it takes
an HTTPS proxy that speaks TLS in the host's name, with a certificate that the client is told to trust, and hands what
comes on to the provider under test. Nothing leaves the machine.
"""

import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from msgspec import Struct

HOSTS = ("api.anthropic.com", "api.openai.com", "openrouter.ai")


class Direct(Struct, frozen=True, kw_only=True):
    """A proxy and the certificate it shows."""

    url: str
    certificate: Path

    @property
    def env(self) -> dict[str, str]:
        """The variables by which programs of all kinds take the proxy and trust it."""
        trusted = str(self.certificate)
        names = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CODEX_CA_CERTIFICATE", "REQUESTS_CA_BUNDLE")
        return {"HTTPS_PROXY": self.url, "https_proxy": self.url, **dict.fromkeys(names, trusted)}


@contextmanager
def direct_to(provider_url: str, folder: Path) -> Iterator[Direct]:
    """Answer for the providers' hosts until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_accept, args=(listening, context, provider_url), daemon=True).start()
        yield Direct(url=f"http://127.0.0.1:{listening.getsockname()[1]}", certificate=certificate)
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "hosts.pem", folder / "hosts.key"
    names = ",".join(f"DNS:{host}" for host in HOSTS)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=providers under test"]
    command += ["-addext", f"subjectAltName={names}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return certificate, key


def _accept(listening: socket.socket, context: ssl.SSLContext, provider_url: str) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        Thread(target=_serve, args=(client, context, provider_url), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, provider_url: str) -> None:
    """Take one CONNECT: a host that is none of the providers' is not there."""
    with suppress(OSError), client:
        head = b""
        while b"\r\n\r\n" not in head and (piece := client.recv(4_096)):
            head += piece
        host = head.split(b" ", 2)[1].rpartition(b":")[0].decode()
        if not head.startswith(b"CONNECT ") or host not in HOSTS:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            return
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        parts = urlsplit(provider_url)
        with (
            context.wrap_socket(client, server_side=True) as spoken,
            socket.create_connection((parts.hostname or "", parts.port or 80)) as provider,
        ):
            back = Thread(target=_pump, args=(provider, spoken), daemon=True)
            back.start()
            _pump(spoken, provider)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
