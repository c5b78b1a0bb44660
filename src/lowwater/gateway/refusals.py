"""What the gateway says itself when it cannot go on, in the words of the format the client speaks."""

import msgspec

from lowwater.gateway.upstream import Headers

_TYPES = {
    400: ("invalid_request_error", "invalid_request_error"),
    401: ("authentication_error", "invalid_request_error"),
    403: ("permission_error", "permission_error"),
    408: ("timeout_error", "timeout"),
    413: ("request_too_large", "invalid_request_error"),
    415: ("invalid_request_error", "invalid_request_error"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("api_error", "server_error"),
    502: ("api_error", "server_error"),
    503: ("overloaded_error", "server_error"),
    504: ("timeout_error", "server_error"),
}


class Refused(Exception):
    """The gateway cannot go on with a request; `said` is for its client."""

    def __init__(self, status: int, said: str, *, retry_after: int | None = None) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.retry_after = retry_after

    def body(self, *, anthropic: bool) -> bytes:
        """Return it as the provider would have put it."""
        theirs, ours = _TYPES.get(self.status, _TYPES[500])
        if anthropic:
            return msgspec.json.encode({"type": "error", "error": {"type": theirs, "message": self.said}})
        return msgspec.json.encode(
            {"error": {"message": self.said, "type": ours, "param": None, "code": None}}
        )

    def headers(self, body: bytes) -> Headers:
        """Return the headers of the answer."""
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"x-lowwater", b"refused"),
        ]
        if self.retry_after is not None:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        return headers
