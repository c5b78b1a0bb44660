"""What a real server of the Responses API answers, as a logger writes it down."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from lowwater.testing.provider import Provider


def asked(items: list[Any]) -> dict[str, Any]:
    """A request without any memory at the provider."""
    return {"model": "gpt-5.5", "input": items, "store": False, "include": ["reasoning.encrypted_content"]}


def streamed_from(provider: Provider, body: dict[str, Any], *, stream: bool) -> Any:
    """The answer's body: an object, or the text of a stream."""
    connection = http.client.HTTPConnection(urlsplit(provider.openai_base_url).netloc, timeout=30)
    try:
        headers = {"authorization": "Bearer k"}
        connection.request("POST", "/v1/responses", json.dumps({**body, "stream": stream}), headers)
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return text if stream else json.loads(text)
