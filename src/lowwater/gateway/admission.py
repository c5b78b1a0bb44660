"""Who may use the gateway, and how much of it one client may take: slots for requests, and memory for bodies."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lowwater.gateway.options import GatewayOptions, is_loopback
from lowwater.gateway.tenants import ACCESS, NOBODY, credential_of, is_admitted, tenant_of
from lowwater.gateway.upstream import Refused

_OWN_KEY = "this gateway wants one of its own keys in the header x-lowwater-key"
TOO_SLOW = "the request's body came too slowly while others were waiting"
COPIES = 4
"""How many times its size a body takes in memory while it is worked on: as it came, its fields, its messages, what is sent."""
_HEAD_START = 64 * 1024
"""Bytes that every body is credited with, so that one that has just begun does not count as slow."""
_GRACE_SECONDS = 0.1
"""Seconds that every body is charged with from the start."""


def refuse_unless_admitted(headers: Mapping[str, str], options: GatewayOptions) -> None:
    """Raise Refused for a request without the gateway's own key or a provider's credential, where these are required."""
    if not is_admitted(headers, options.access_keys):
        raise Refused(401, _OWN_KEY)
    if options.require_key and not credential_of(headers):
        raise Refused(401, "this gateway passes on only requests that carry an API key or a token")


def refuse_unless_operator(headers: Mapping[str, str], options: GatewayOptions) -> None:
    """Raise Refused for a request for metrics without one of the gateway's own keys, if it has any.

    Scrapers send the key as a bearer token. No provider's token is exposed by this: the request goes no further.
    """
    key_header = {ACCESS: headers.get(ACCESS) or credential_of(headers)}
    if not is_admitted(key_header, options.access_keys):
        raise Refused(401, f"{_OWN_KEY}, or as a bearer token")


def share_owner(headers: Mapping[str, str], *, secret: bytes, address: str) -> str:
    """Return the client whose share a request counts towards: its credential, or without one its address."""
    tenant = tenant_of(headers, secret=secret)
    return f"{NOBODY} {address}" if tenant == NOBODY else tenant


class Shares:
    """A resource that clients share fairly: a client that holds as much as is still free gets no more.

    One client alone gets half of it, two get a third each, and so on: some is always left for another.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: Counter[str] = Counter()
        self.total = 0

    def refusal(self, client: str, amount: int = 1) -> Refused | None:
        """Return why a client cannot have `amount` more; None if it can. A client that holds nothing may take all that is free."""
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
        """Give a client `amount` more, or raise Refused."""
        if refused := self.refusal(client, amount):
            raise refused
        self._held[client] += amount
        self.total += amount

    def give_back(self, client: str, amount: int = 1) -> None:
        """Take `amount` back from a client."""
        self.total -= amount
        self._held[client] -= amount
        if self._held[client] <= 0:
            del self._held[client]


class BodyMemory:
    """The memory for bodies, shared between clients; one remote address gets half of it at most.

    The limit by address is there because anybody can make up keys. When memory runs out, the slowest bodies lose theirs.
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
        """Give a client at an address `amount` more, or raise Refused."""
        if not is_loopback(address) and self._by_address[address] + amount > self._half:
            raise Refused(
                429, "too many requests from this address are under way: try again in a moment", retry_after=1
            )
        self._shares.take(client, amount)
        self._by_address[address] += amount

    def may_displace(self, client: str, address: str, amount: int) -> bool:
        """Return whether a client could have `amount` more if nobody else held any."""
        is_remote = not is_loopback(address)
        return max(self._shares.held(client), is_remote * self._by_address[address]) + amount <= self._half

    def give_back(self, client: str, address: str, amount: int) -> None:
        """Take `amount` back."""
        self._shares.give_back(client, amount)
        self._by_address[address] -= amount
        if self._by_address[address] <= 0:
            del self._by_address[address]


class IncomingBody:
    """A request's body while it is received and worked on, with the memory reserved for it."""

    def __init__(
        self,
        client: str,
        memory: BodyMemory,
        *,
        address: str = "",
        make_room: Callable[["IncomingBody"], bool] = lambda _: False,
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
        """Return the deadline for the body; `cut_off` brings it forward when others need its slot."""
        self._limit = asyncio.timeout(seconds)
        return self._limit

    def reserve(self, amount: int) -> None:
        """Reserve memory for `amount` more bytes, or raise Refused if there is none."""
        if self.is_cut_off:
            raise Refused(408, TOO_SLOW, retry_after=1)
        while True:
            try:
                self._memory.take(self.client, self._address, amount * COPIES)
            except Refused:
                may_displace = self._memory.may_displace(self.client, self._address, amount * COPIES)
                if not may_displace or not self._make_room(self):
                    raise
            else:
                break
        self.bytes += amount

    def reserve_total(self, amount: int) -> None:
        """Reserve memory for a body that decompresses to `amount` bytes, or raise Refused if there is none."""
        self.reserve(max(0, amount - self.bytes))

    def release_above(self, amount: int) -> None:
        """Give back the memory beyond `amount` bytes, which decompressing took in vain."""
        less = max(0, self.bytes - amount)
        self._memory.give_back(self.client, self._address, less * COPIES)
        self.bytes -= less

    def pace(self) -> float:
        """Return how fast the body comes, in bytes per second."""
        return (self.bytes + _HEAD_START) / (self._loop.time() - self._began + _GRACE_SECONDS)

    def cut_off(self) -> None:
        """Stop waiting for the body, because another request needs its slot or memory."""
        self.is_cut_off = True
        if self._limit is not None:
            self._limit.reschedule(self._loop.time())

    def release(self) -> None:
        """Give back all memory of the body."""
        self.release_above(0)


class Admission:
    """Shares the gateway's request slots and memory between its clients."""

    def __init__(self, options: GatewayOptions) -> None:
        self._receiving_slots = Shares(options.most_requests)
        self._working_slots = Shares(options.most_requests)
        self._memory = BodyMemory(options.most_held_bytes)
        self._receiving: set[IncomingBody] = set()

    @property
    def held_bytes(self) -> int:
        """Memory that the bodies under way take, in bytes."""
        return self._memory.total

    @contextmanager
    def receiving(self, client: str, address: str = "") -> Iterator[IncomingBody]:
        """Admit a request whose body is still to come, or raise Refused; when slots run out, the slowest body loses its own."""
        while (refused := self._receiving_slots.refusal(client)) is not None:
            # 429: the client is beyond its own share, so that one of its own bodies has to make room.
            rivals = [each for each in self._receiving if refused.status != 429 or each.client == client]
            if not rivals:
                raise refused
            self._cut_off(min(rivals, key=IncomingBody.pace))
        self._receiving_slots.take(client)
        body = IncomingBody(client, self._memory, address=address, make_room=self._make_room)
        self._receiving.add(body)
        try:
            yield body
        finally:
            self._leave(body)
            body.release()

    @contextmanager
    def working(self, body: IncomingBody) -> Iterator[None]:
        """Give a request whose body is complete a slot for its work, or raise Refused; its slot for receiving is free again."""
        self._working_slots.take(body.client)
        self._leave(body)
        try:
            yield
        finally:
            self._working_slots.give_back(body.client)

    def _make_room(self, body: IncomingBody) -> bool:
        """Take the memory of the slowest body if it comes slower than this one; return whether that was so."""
        others = [each for each in self._receiving if each is not body and each.bytes]
        slowest = min(others, key=IncomingBody.pace, default=body)
        if slowest.pace() >= body.pace():
            return False
        self._cut_off(slowest)
        slowest.release()
        return True

    def _cut_off(self, slowest: IncomingBody) -> None:
        self._leave(slowest)
        slowest.cut_off()

    def _leave(self, body: IncomingBody) -> None:
        if body in self._receiving:
            self._receiving.discard(body)
            self._receiving_slots.give_back(body.client)
