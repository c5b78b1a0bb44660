"""What the gateway does in a client's pauses, against a provider that keeps a cache by a fake clock."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.pauses import pauses_kept
from lowwater.gateway.app import Gateway
from lowwater.gateway.idle import minimal_body
from lowwater.gateway.options import GatewayOptions
from lowwater.gateway.server import served
from lowwater.stores.memory import MemoryStore
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.provider import Fail, Provider, Say, Seen
from tests.gateway.conftest import MODEL, Through, eventually

SYSTEM = [{"type": "text", "text": "You work with care. " * 3_000, "cache_control": {"type": "ephemeral"}}]
PERIOD, LIFETIME = 280.0, 300.0


class Paused(Struct, frozen=True, kw_only=True):
    """A gateway, its provider and their clock."""

    through: Through
    gateway: Gateway
    clock: ScriptedClock

    def say(self, messages: list[Any], said: str, **headers: str) -> list[Any]:
        """Send one message more, and return the list with the answer."""
        messages = [*messages, {"role": "user", "content": said}]
        body = {"model": MODEL, "max_tokens": 900, "system": SYSTEM, "messages": messages, "temperature": 1}
        marked = [*messages[:-1], {"role": "user", "content": _marked(said)}]
        answer = self.through.post({**body, "messages": marked}, **headers)
        assert answer.status_code == 200, answer.text
        return [*messages, {"role": "assistant", "content": answer.json()["content"]}]

    @property
    def pings(self) -> list[Seen]:
        """The requests that the client did not send."""
        return [seen for seen in self.through.provider.requests if seen.body["max_tokens"] == 1]

    def _has_acted(self, pings: int) -> bool:
        return len(self.pings) >= pings or not self.gateway.idle.watched

    def pause(self, seconds: float) -> None:
        """Let time pass until the next thing is due or this pause is over, one period after the other."""
        until = self.clock.now() + seconds
        eventually(lambda: self.gateway.idle.watched, seconds=1)
        while self.gateway.idle.watched and (left := until - self.clock.now()) > PERIOD:
            done = len(self.pings) + 1
            self.clock.advance(min(PERIOD, left))
            assert eventually(partial(self._has_acted, done))
            assert eventually(lambda: not self.gateway.idle.is_busy)
        self.clock.advance(until - self.clock.now())


def _marked(said: str) -> list[Any]:
    return [{"type": "text", "text": said, "cache_control": {"type": "ephemeral"}}]


Starting = Callable[..., Paused]


@pytest.fixture
def start() -> Iterator[Starting]:
    with ExitStack() as stack:

        def started(
            script: Any = (), *, monotonic: Callable[[], float] | None = None, **options: Any
        ) -> Paused:
            clock = ScriptedClock(1_800_000_000.0)
            provider = stack.enter_context(Provider(script, now=clock.now))
            base = {"anthropic_upstream": provider.anthropic_base_url, "idle_consent": "api-keys"}
            gateway = Gateway(
                GatewayOptions(**(base | options)),
                store := MemoryStore(),
                clock=clock,
                monotonic=monotonic or clock.now,
            )
            gateway.idle.poll = 0.02
            url = stack.enter_context(served(gateway))
            return Paused(
                through=Through(provider=provider, url=url, store=store), gateway=gateway, clock=clock
            )

        yield started


def conversation(paused: Paused, **headers: str) -> list[Any]:
    """Three turns, a few seconds apart."""
    messages: list[Any] = []
    for said in ("Begin.", "Go on.", "And then?"):
        messages = paused.say(messages, said, **headers)
        paused.clock.advance(5)
    return messages


def test_a_prefix_is_kept_warm_while_that_is_cheaper_and_read_by_the_next_request(start: Starting) -> None:
    paused = start(idle="auto")
    messages = conversation(paused)
    paused.pause(800)
    assert len(paused.pings) == 2
    first = paused.through.provider.requests[2].body
    for ping in paused.pings:
        assert {**ping.body, "max_tokens": 900} == first, (
            "the same prefix, byte for byte, and one token of output"
        )
        assert "x-api-key" in ping.headers
    paused.say(messages, "I am back.")
    (account,) = paused.through.store.accounts()
    last = account.records[-1].usage
    assert last is not None
    assert last.cache_read > 10_000 > last.cache_write
    kept = pauses_kept(account, load_registry())
    assert kept.pings == 2
    assert kept.saved is not None
    assert kept.cost is not None
    assert kept.saved > 5 * kept.cost > 0, "written again it would have cost 12 times as much as read"


def test_without_it_the_prefix_is_written_again(start: Starting) -> None:
    paused = start()
    messages = conversation(paused)
    paused.clock.advance(800)
    paused.say(messages, "I am back.")
    assert paused.pings == []
    assert paused.gateway.idle.watched == 0
    (account,) = paused.through.store.accounts()
    assert account.records[-1].usage is not None
    assert account.records[-1].usage.cache_read == 0


def test_it_stops_when_it_no_longer_pays_and_gives_the_key_up(start: Starting) -> None:
    paused = start(idle="keep-warm")
    conversation(paused)
    paused.pause(20_000)
    assert 1 <= len(paused.pings) <= 12
    assert eventually(lambda: paused.gateway.idle.watched == 0)


def test_a_limit_in_dollars_ends_it(start: Starting) -> None:
    paused = start(idle="keep-warm", idle_dollars=0.01)
    conversation(paused)
    paused.pause(2_000)
    assert len(paused.pings) <= 1
    assert eventually(lambda: paused.gateway.idle.watched == 0)


@pytest.mark.parametrize("consent", ["on", ""])
def test_a_client_of_a_shared_gateway_has_to_agree(start: Starting, consent: str) -> None:
    paused = start(idle="keep-warm", idle_consent="asked")
    conversation(paused, x_lowwater_idle=consent)
    paused.pause(400)
    assert len(paused.pings) == (1 if consent else 0)
    assert all("x-lowwater-idle" not in seen.headers for seen in paused.through.provider.requests)


def test_a_login_is_never_used_in_a_pause(start: Starting) -> None:
    paused = start(idle="keep-warm")
    conversation(paused, authorization="Bearer sk-ant-oat01-abcdefghijklmnopqrstuvwxyz0123456789")
    assert paused.gateway.idle.watched == 0


def test_nothing_is_sent_late_after_the_machine_slept(start: Starting) -> None:
    paused = start(idle="keep-warm", monotonic=time.monotonic)
    conversation(paused)
    paused.clock.advance(PERIOD)
    assert eventually(lambda: paused.gateway.idle.watched == 0), "the wall clock has gained on the other one"
    assert paused.pings == []


def test_nothing_is_sent_once_the_prefix_has_expired(start: Starting) -> None:
    paused = start(idle="keep-warm")
    conversation(paused)
    paused.clock.advance(LIFETIME + 1)
    assert eventually(lambda: paused.gateway.idle.watched == 0)
    assert paused.pings == []


def test_a_refusal_ends_it(start: Starting) -> None:
    def answers(seen: Seen) -> Any:
        return (
            Fail(status=429, type="rate_limit_error", message="slow")
            if seen.body["max_tokens"] == 1
            else Say(text="Done.")
        )

    paused = start(answers, idle="keep-warm")
    conversation(paused)
    paused.pause(2_000)
    assert len(paused.pings) == 1


def test_the_key_is_given_up_with_the_next_request_and_with_the_gateway() -> None:
    clock = ScriptedClock(1_800_000_000.0)
    with Provider(now=clock.now) as provider:
        options = GatewayOptions(
            anthropic_upstream=provider.anthropic_base_url, idle="keep-warm", idle_consent="api-keys"
        )
        gateway = Gateway(options, store := MemoryStore(), clock=clock, monotonic=clock.now)
        with served(gateway) as url:
            paused = Paused(
                through=Through(provider=provider, url=url, store=store), gateway=gateway, clock=clock
            )
            messages = conversation(paused)
            assert eventually(lambda: gateway.idle.watched == 1)
            paused.say(messages, "Again.")
            assert eventually(lambda: gateway.idle.watched == 1), "one pause of one session, not two"
        assert gateway.idle.watched == 0


def test_a_request_with_a_thinking_budget_is_let_go() -> None:
    thinking = (
        b'{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":4000},"messages":[]}'
    )
    assert minimal_body(thinking, "anthropic") is None
    adaptive = (
        b'{"model":"m","max_tokens":9000,"stream":true,"thinking":{"type":"adaptive"},"messages":[ 1 ]}'
    )
    assert minimal_body(adaptive, "anthropic") == (
        b'{"model":"m","stream":false,"thinking":{"type":"adaptive"},"messages":[ 1 ],"max_tokens":1}'
    )
