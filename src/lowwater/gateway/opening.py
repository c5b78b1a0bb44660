"""The beginning of a stream: a provider may open one and then refuse the prompt inside it."""

import aiohttp
from msgspec import Struct

from lowwater.core.messages import Format
from lowwater.gateway.relaying import EVENTS, Watched, received


class Opening(Struct, frozen=True, kw_only=True):
    """What came of a stream before anything of the answer did."""

    chunks: tuple[bytes, ...] = ()
    broken: str = ""
    """Why there will be no answer; empty if one has begun."""


async def opening_of(response: aiohttp.ClientResponse, format: Format) -> Opening:
    """Read a stream until something of the answer comes, where a refusal may still come instead; no other is waited for."""
    if format != "openai_responses" or response.content_type != EVENTS:
        return Opening()
    stream, chunks = Watched(format), []
    try:
        async for chunk in received(response):
            chunks.append(chunk)
            stream.feed(chunk)
            if stream.has_begun or stream.is_done or stream.broken:
                break
    except (aiohttp.ClientError, OSError):
        # What has come is passed on, and the same error is met again behind it.
        if not chunks:
            response.close()
            raise
    except BaseException:
        response.close()
        raise
    return Opening(chunks=tuple(chunks), broken=stream.broken)
