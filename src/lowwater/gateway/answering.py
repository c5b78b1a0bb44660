"""The way back to one client: what was begun is noted, so that a failure is told only where it still can be."""

from lowwater.gateway.exchange import Message, Receive, Send
from lowwater.gateway.logs import Line
from lowwater.gateway.refusals import Refused


class Answering:
    """Sends one answer."""

    def __init__(self, receive: Receive, send: Send, line: Line) -> None:
        self.receive = receive
        """Gives what still comes from the client: that it has gone."""
        self._send = send
        self._line = line
        self.anthropic = False
        """Whether the client speaks Anthropic's format."""

    async def send(self, message: Message) -> None:
        """Pass a message on to the server."""
        if message["type"] == "http.response.start":
            self._line.status = message["status"]
        elif message.get("body"):
            self._line.first_byte()
            self._line.response_bytes += len(message["body"])
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Tell the client what is wrong; an answer that was begun is left unfinished, and the server cuts it off."""
        self._line.outcome = self._line.outcome or f"refused: {refused.said}"
        if self._line.status:
            return
        body = refused.body(anthropic=self.anthropic)
        await self.send(
            {"type": "http.response.start", "status": refused.status, "headers": refused.headers(body)}
        )
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    async def plain(self, status: int, body: bytes, kind: bytes = b"application/json") -> None:
        """Send a whole answer of our own."""
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})
