"""Pauses: before the cached prefix of a client that agreed expires, it is kept warm or compacted (`core/costs/idle.py` decides).

This is the only place where a client's credential is kept after its request: in memory, for one session, until the session's next
request, the end of the plan, a limit, or the end of the gateway. Nothing is sent late: if the prefix may have expired meanwhile,
because the machine slept or the gateway was busy, the pause is given up.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import aiohttp
from msgspec import Struct

from lowwater.core.formats.codec import decode_response
from lowwater.core.messages import Format
from lowwater.core.strict_json import read_fields, read_json, write_object
from lowwater.core.turns.idle import PausePlan, WarmPrefix, warm_prefix
from lowwater.errors import LowwaterError
from lowwater.gateway.client_request import ClientRequest, is_utf8
from lowwater.gateway.credentials import Credential, is_agreed, is_api_key, lent
from lowwater.gateway.observability import GatewayMetrics, LogLine, error_location, write_line
from lowwater.gateway.options import IDLE_HOURS, GatewayOptions
from lowwater.gateway.tenants import KEEP_WARM
from lowwater.gateway.turns import GatewayTurn
from lowwater.gateway.upstream import Headers, Upstreams
from lowwater.protocols import Clock
from lowwater.session.idle import record_ping
from lowwater.session.internals import internals
from lowwater.session.session import Session

T = TypeVar("T")
_log = logging.getLogger("lowwater.gateway")

_POLL = 1.0
"""Seconds between two checks of the pauses."""
_DRIFT = 5.0
"""Seconds that the wall clock may gain on the monotonic one between two checks; if it gains more, the machine slept."""
_ANSWER_SECONDS = 60.0
"""Seconds that an answer may take."""
_MOST_PAUSES = 1_000
"""The most pauses that are watched at once; further ones are left alone."""
_LEAST_CALLS = 2
_ONE_TOKEN: Mapping[Format, Mapping[str, bytes]] = {
    "anthropic": {"max_tokens": b"1"},
    "openai_chat": {"max_completion_tokens": b"1"},
    "openai_responses": {"max_output_tokens": b"16"},
}
"""The smallest output limit that each API accepts."""
_LEFT_OUT = frozenset({"stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens"})


def may_keep_warm(headers: Mapping[str, str], options: GatewayOptions) -> bool:
    """Return whether the credential of a request may be used in pauses: it is an API key, and its owner has agreed.

    With `lowwater run`, the user agrees by the option `--idle`; elsewhere each client agrees for itself, by a header.
    """
    if options.idle == "off" or options.shadow:
        return False
    agreed = options.idle_consent == "api-keys" or is_agreed(headers.get(KEEP_WARM, ""))
    return agreed and is_api_key(headers)


def minimal_body(body: bytes, format: Format) -> bytes | None:
    """Return a request that reads the same prefix and asks for the shortest output; None if its output cannot be short.

    That is so with a thinking budget: the output limit has to exceed it, and the cache depends on it, so it cannot be lowered.
    """
    fields = read_fields(body)
    if _thinks_at_length(fields.get("thinking", b"")):
        return None
    kept = {name: value for name, value in fields.items() if name not in _LEFT_OUT}
    least = dict(_ONE_TOKEN[format])
    if format == "openai_chat" and "max_tokens" in fields:
        least = {"max_tokens": b"1"}
    return write_object({**kept, **least, **({"stream": b"false"} if "stream" in kept else {})})


class _Thinking(Struct):
    budget_tokens: int | None = None


def _thinks_at_length(thinking: bytes) -> bool:
    return thinking[:1] == b"{" and read_json(thinking, _Thinking).budget_tokens is not None


class _Pause:
    """A session between two requests of its client."""

    def __init__(self, turn: GatewayTurn, target: str, headers: Headers, credential: Credential) -> None:
        self.session: Session = turn.session
        self.format = turn.client_request.format
        self.model = turn.client_request.model
        self.path = turn.client_request.path
        self.tenant = turn.lookup.tenant[:8]
        self.body: bytes | None = turn.body
        self.target = target
        self.headers: Headers = headers
        self.credential: Credential | None = credential
        self.prefix: WarmPrefix | None = None
        self.is_over = False

    def end(self) -> None:
        """Give up the credential and the request."""
        self.is_over = True
        self.body, self.headers, self.credential = None, [], None


class IdleKeeper:
    """Watches the pauses of the clients that agreed, and does in each of them what pays."""

    def __init__(
        self,
        options: GatewayOptions,
        upstreams: Upstreams,
        metrics: GatewayMetrics,
        in_thread: Callable[..., Awaitable[Any]],
        *,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._upstreams = upstreams
        self._metrics = metrics
        self._in_thread = in_thread
        self._clock = clock
        self._monotonic = monotonic
        self.poll = _POLL
        """Seconds between two checks of the pauses."""
        self._pauses: dict[str, _Pause] = {}
        self._newest: OrderedDict[str, ClientRequest] = OrderedDict()
        """The newest request under way of each session."""
        self._spent: Counter[str] = Counter()
        """What keeping each session warm has cost in this process, in nano-dollars."""
        self._looking: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def watched(self) -> int:
        """How many pauses are watched, and so how many credentials are held."""
        return len(self._pauses)

    @property
    def is_busy(self) -> bool:
        """Whether something is being done in a pause at this moment."""
        return bool(self._under_way)

    def begin(self, turn: GatewayTurn, target: str, headers: Headers, credential: Credential) -> None:
        """Watch the pause that begins when a turn ends; target, headers and credential are those of the client's own request.

        There is no pause if the next request has come already: a client gets its answer before the gateway has finished the turn.
        """
        if (
            self._newest.pop(turn.session.name, None) is not turn.client_request
            or turn.is_untouched
            or len(self._pauses) >= _MOST_PAUSES
        ):
            return
        pause = _Pause(turn, target, headers, credential)
        state = internals(turn.session).shared.state
        pause.prefix = warm_prefix(state)
        # A single request may not begin a conversation: it may ask for a title, or a question on the side.
        if pause.prefix is None or state.totals.turns < _LEAST_CALLS:
            pause.end()
            return
        self._pauses[turn.session.name] = pause
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    def end(self, turn: GatewayTurn) -> None:
        """End a session's pause, if there is one: its client has sent this turn."""
        self._newest[turn.session.name] = turn.client_request
        self._newest.move_to_end(turn.session.name)
        if len(self._newest) > _MOST_PAUSES:
            self._newest.popitem(last=False)
        self._drop(turn.session.name)

    def _drop(self, name: str) -> None:
        pause = self._pauses.pop(name, None)
        if pause is not None:
            pause.end()

    async def close(self) -> None:
        """End every pause."""
        for name in list(self._pauses):
            self._drop(name)
        tasks = [*self._under_way, *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        """Check all pauses every `poll` seconds until there are none."""
        wall, steady = self._clock.now(), self._monotonic()
        while self._pauses:
            await asyncio.sleep(self.poll)
            now, tick = self._clock.now(), self._monotonic()
            slept = (now - wall) - (tick - steady) > _DRIFT
            wall, steady = now, tick
            for name, pause in list(self._pauses.items()):
                prefix = pause.prefix
                if prefix is None:
                    continue
                if slept or now >= prefix.expires:
                    self._give_up(name, pause, "slept" if slept else "late")
                elif now >= prefix.due:
                    pause.prefix = None
                    task = asyncio.create_task(self._act(name, pause))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)

    async def _act(self, name: str, pause: _Pause) -> None:
        """Plan and act, shortly before the prefix expires."""
        try:
            found: PausePlan | None = await self._in_thread(self._plan, pause)
            action = "let-go" if found is None else found.plan.action
            if pause.is_over or found is None or action == "let-go":
                self._give_up(name, pause, "let-go")
            elif action == "compact":
                await self._compact(name, pause)
            elif self._spent[name] + found.costs.ping > self._options.idle_dollars * 1_000_000_000:
                self._give_up(name, pause, "limit")
            elif self._clock.now() >= found.cached.expires:
                self._give_up(name, pause, "late")
            else:
                self._spent[name] += found.costs.ping
                await self._keep_warm(name, pause)
        except (LowwaterError, aiohttp.ClientError, TimeoutError, OSError) as error:
            self._give_up(name, pause, f"failed: {type(error).__name__}")
        except Exception as error:  # noqa: BLE001 - nobody waits for it, and the pause is over either way
            _log.error("a defect in a pause: %s", error_location(error))
            self._give_up(name, pause, "failed")

    def _plan(self, pause: _Pause) -> PausePlan | None:
        return internals(pause.session).pause_plan(self._options.idle, lasts=IDLE_HOURS * 3_600)

    async def _keep_warm(self, name: str, pause: _Pause) -> None:
        body = None if pause.body is None else minimal_body(pause.body, pause.format)
        if body is None or pause.credential is None:
            self._give_up(name, pause, "let-go")
            return
        line = LogLine(
            method="POST", path=pause.path, began=time.perf_counter(), model=pause.model, session=name
        )
        line.tenant, line.did, line.decision = pause.tenant, "kept-warm", "kept-warm"
        line.request_bytes = len(body)
        async with asyncio.timeout(_ANSWER_SECONDS):
            response = await self._upstreams.send(
                "POST", pause.credential.base_url, pause.target, pause.headers, body
            )
            answer = await response.read()
        line.first_byte()
        line.status, line.response_bytes = response.status, len(answer)
        if response.status >= 300 or not is_utf8(answer):
            line.outcome = "refused"
        else:
            await self._in_thread(record_ping, pause.session, answer)
            if not decode_response(answer).reports_cache:
                line.outcome = "no cache reported"
        self._metrics.request(line)
        write_line(line)
        if pause.is_over:
            return
        pause.prefix = None if line.outcome else warm_prefix(internals(pause.session).shared.state)
        if pause.prefix is None:
            self._give_up(name, pause, "refused")

    async def _compact(self, name: str, pause: _Pause) -> None:
        with lent(pause.credential):
            await pause.session.acompress()
        self._give_up(name, pause, "compacted")

    def _give_up(self, name: str, pause: _Pause, why: str) -> None:
        """End a pause, and say why in the log."""
        if self._pauses.get(name) is pause:
            del self._pauses[name]
        pause.end()
        _log.info('{"idle":"%s","session":"%s","tenant":"%s"}', why, name, pause.tenant)
