"""Sending requests at a steady rate and timing the first byte of each answer."""

import asyncio
import time
from collections.abc import Sequence

import aiohttp
from msgspec import Struct

from bench.gateway.conversations import Conversation

_HEADERS = {"x-api-key": "sk-bench", "anthropic-version": "2023-06-01", "content-type": "application/json"}


class Timed(Struct, frozen=True, kw_only=True):
    """One request: when its answer began and ended, in seconds, and whether it was whole."""

    first: float
    whole: float
    ok: bool


async def ask(client: aiohttp.ClientSession, url: str, conversation: Conversation) -> Timed:
    """Send the next request of a conversation, and read its answer to the end."""
    body = conversation.body()
    began = time.perf_counter()
    first = 0.0
    tail = b""
    try:
        async with client.post(f"{url}/v1/messages", data=body, headers=_HEADERS) as response:
            async for chunk in response.content.iter_any():
                first = first or time.perf_counter() - began
                tail = (tail + chunk)[-200:]
            ok = response.status == 200 and b"message_stop" in tail
    except (aiohttp.ClientError, OSError):
        ok = False
    conversation.answered()
    return Timed(first=first, whole=time.perf_counter() - began, ok=ok)


async def steadily(
    url: str, conversations: Sequence[Conversation], *, count: int, rate: float
) -> list[Timed]:
    """Send `count` requests, `rate` a second, whatever becomes of those before; each conversation in turn."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        tasks = []
        began = time.perf_counter()
        for number in range(count):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(client, url, conversations[number % len(conversations)])))
        return list(await asyncio.gather(*tasks))


async def together(url: str, conversations: Sequence[Conversation]) -> list[Timed]:
    """Send one request of each conversation at the same time."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
        return list(await asyncio.gather(*(ask(client, url, each) for each in conversations)))
