"""Who may come in, and how much of the gateway one client may hold: its keys, places for requests, and memory for bodies."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lowwater.gateway.options import Options, is_loopback
from lowwater.gateway.tenants import ACCESS, NOBODY, credential_of, is_admitted, tenant_of
from lowwater.gateway.upstream import Refused

_OWN_KEY = "this gateway wants one of its own keys in the header x-lowwater-key"

TOO_SLOW = "the request's body came too slowly while others were waiting"

COPIES = 4
"""Times its size that a body takes in memory while it is worked on: as it came, its fields, its messages, and what leaves."""
_HEAD_START = 64 * 1024
"""Bytes that every body is thought to have sent already, so that one that has just begun is not called slow."""
_AT_ONCE = 0.1
"""Seconds that every body is thought to have taken already."""


def refuse_unless_admitted(headers: Mapping[str, str], options: Options) -> None:
    """Raise Refused for a request that goes no further."""
    if not is_admitted(headers, options.access_keys):
        raise Refused(401, _OWN_KEY)
    if options.require_key and not credential_of(headers):
        raise Refused(401, "this gateway passes on only requests that carry an API key or a token")


def refuse_unless_operator(headers: Mapping[str, str], options: Options) -> None:
    """Raise Refused for somebody who asks for figures without one of the gateway's own keys, if it has any.

    It may come as a token, which is what scrapers send, and never is a provider's: nothing goes on from here.
    """
    brought = {ACCESS: headers.get(ACCESS) or credential_of(headers)}
    if not is_admitted(brought, options.access_keys):
        raise Refused(401, f"{_OWN_KEY}, or as a bearer token")


def share_owner(headers: Mapping[str, str], *, secret: bytes, address: str) -> str:
    """Return whose share a request is counted to: its credential's, or without one that of its address."""
    tenant = tenant_of(headers, secret=secret)
    return f"{NOBODY} {address}" if tenant == NOBODY else tenant


class Shares:
    """An amount of something that clients share: who holds as much as is still free gets no more.

    One client alone gets half of it, two get a third each, and so on: there is always some left for another.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: Counter[str] = Counter()
        self.total = 0

    def refusal(self, client: str, amount: int = 1) -> Refused | None:
        """Return why a client does not get so much more; None if it does. A client that holds nothing may take all that is free."""
        free = self._size - self.total
        if amount > free:
            return Refused(503, "too many requests are under way: try again in a moment", retry_after=1)
        held = self._held[client]
        if held and held + amount > free:
            return Refused(
                429, "too many requests with this key are under way: try again in a moment", retry_after=1
            )
        return None

    def held(self, client: str) -> int:
        """Return how much a client holds."""
        return self._held[client]

    def take(self, client: str, amount: int = 1) -> None:
        """Give a client so much more, or raise Refused."""
        if refused := self.refusal(client, amount):
            raise refused
        self._held[client] += amount
        self.total += amount

    def give_back(self, client: str, amount: int = 1) -> None:
        """Take so much back from a client."""
        self.total -= amount
        self._held[client] -= amount
        if self._held[client] <= 0:
            del self._held[client]


class Memory:
    """The memory for bodies: shared between clients, and half of it at most for those of one address that is not this machine.

    Keys can be made up, addresses less so. Where it runs out, bodies that come slowly lose what they hold.
    """

    def __init__(self, size: int) -> None:
        self._half = size // 2
        self._shares = Shares(size)
        self._by_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Bytes that are held."""
        return self._shares.total

    def take(self, client: str, address: str, amount: int) -> None:
        """Give a client at an address so much more, or raise Refused."""
        if not is_loopback(address) and self._by_address[address] + amount > self._half:
            raise Refused(
                429, "too many requests from this address are under way: try again in a moment", retry_after=1
            )
        self._shares.take(client, amount)
        self._by_address[address] += amount

    def may_push(self, client: str, address: str, amount: int) -> bool:
        """Return whether a client would get so much more if nobody else held any."""
        is_far = not is_loopback(address)
        return max(self._shares.held(client), is_far * self._by_address[address]) + amount <= self._half

    def give_back(self, client: str, address: str, amount: int) -> None:
        """Take so much back."""
        self._shares.give_back(client, amount)
        self._by_address[address] -= amount
        if self._by_address[address] <= 0:
            del self._by_address[address]


class Arriving:
    """A request whose body is on its way."""

    def __init__(
        self,
        client: str,
        memory: Memory,
        *,
        address: str = "",
        make_room: Callable[["Arriving"], bool] = lambda _: False,
    ) -> None:
        self.client = client
        self._address = address
        self._make_room = make_room
        self.is_cut_off = False
        self.bytes = 0
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._limit: asyncio.Timeout | None = None

    def until(self, seconds: float) -> asyncio.Timeout:
        """Return the time in which the body has to come, unless others need its place first."""
        self._limit = asyncio.timeout(seconds)
        return self._limit

    def grow(self, amount: int) -> None:
        """Take note of more bytes, or raise Refused where there is no memory for them."""
        if self.is_cut_off:
            raise Refused(408, TOO_SLOW, retry_after=1)
        while True:
            try:
                self._memory.take(self.client, self._address, amount * COPIES)
            except Refused:
                may_push = self._memory.may_push(self.client, self._address, amount * COPIES)
                if not may_push or not self._make_room(self):
                    raise
            else:
                break
        self.bytes += amount

    def swell(self, amount: int) -> None:
        """Take note of what a body has become that was compressed, or raise Refused where there is no memory for it."""
        self.grow(max(0, amount - self.bytes))

    def shrink(self, amount: int) -> None:
        """Give back the memory of what was unpacked in vain: only so many bytes are left."""
        less = max(0, self.bytes - amount)
        self._memory.give_back(self.client, self._address, less * COPIES)
        self.bytes -= less

    def pace(self) -> float:
        """Return how fast it comes, in bytes a second."""
        return (self.bytes + _HEAD_START) / (self._loop.time() - self._began + _AT_ONCE)

    def cut_off(self) -> None:
        """Give its place to another."""
        self.is_cut_off = True
        if self._limit is not None:
            self._limit.reschedule(self._loop.time())

    def forget(self) -> None:
        """Give back the memory of its body."""
        self.shrink(0)


class Admission:
    """Shares the gateway's places and memory between its clients."""

    def __init__(self, options: Options) -> None:
        self._waiting = Shares(options.most_requests)
        self._working = Shares(options.most_requests)
        self._memory = Memory(options.most_held_bytes)
        self._arriving: set[Arriving] = set()

    @property
    def held_bytes(self) -> int:
        """Bytes that the bodies under way take."""
        return self._memory.total

    @contextmanager
    def arriving(self, client: str, address: str = "") -> Iterator[Arriving]:
        """Let a request in whose body is still to come, or raise Refused; where places run out, the slowest body loses its own."""
        while (refused := self._waiting.refusal(client)) is not None:
            # A client beyond its share makes room itself.
            rivals = [each for each in self._arriving if refused.status != 429 or each.client == client]
            if not rivals:
                raise refused
            self._cut_off(min(rivals, key=Arriving.pace))
        self._waiting.take(client)
        request = Arriving(client, self._memory, address=address, make_room=self._make_room)
        self._arriving.add(request)
        try:
            yield request
        finally:
            self._leave(request)
            request.forget()

    @contextmanager
    def working(self, request: Arriving) -> Iterator[None]:
        """Let a request on whose body is there, or raise Refused; its first place is free again."""
        self._working.take(request.client)
        self._leave(request)
        try:
            yield
        finally:
            self._working.give_back(request.client)

    def _make_room(self, request: Arriving) -> bool:
        """Return whether a body that comes slower than this one lost its memory to it."""
        slower = [each for each in self._arriving if each is not request and each.bytes]
        slowest = min(slower, key=Arriving.pace, default=request)
        if slowest.pace() >= request.pace():
            return False
        self._cut_off(slowest)
        slowest.forget()
        return True

    def _cut_off(self, slowest: Arriving) -> None:
        self._leave(slowest)
        slowest.cut_off()

    def _leave(self, request: Arriving) -> None:
        if request in self._arriving:
            self._arriving.discard(request)
            self._waiting.give_back(request.client)
