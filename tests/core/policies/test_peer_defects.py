"""Defects of Hermes and lossless-claw that are matters of decision, none of which can be reproduced."""

from itertools import pairwise

import pytest
from msgspec import Struct
from msgspec.structs import replace

from lowwater.core.decisions import Compact, DecisionContext, Keep, Past
from lowwater.core.limits import Limits, derive_limits
from lowwater.core.policies.registry import POLICIES
from lowwater.core.policies.safety_rules import (
    after_compaction,
    after_failure,
    after_switch,
    after_turn,
    decide,
)
from lowwater.core.proposals import Proposal
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.decision_contexts import NOON, example_context, offer

SETTINGS = Settings()
EVERY = pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])


class Event(Struct, frozen=True, kw_only=True):
    """A compaction in a simulated session."""

    turn: int
    code: str
    before: int
    after: int
    called: bool


class Session:
    """A session in numbers: a head and a tail that stay, old tool output that can go, old text that can be summarised."""

    def __init__(self, limits: Limits, *, head: int = 8_000, growth: int = 2_000, tools: float = 0.6) -> None:
        self.limits, self.head, self.growth, self.tools = limits, head, growth, tools
        self.tail = self.output = self.text = self.summary = 0
        self.past = Past()
        self.at = NOON
        self.events: list[Event] = []

    @property
    def prompt(self) -> int:
        return self.head + self.summary + self.output + self.text + self.tail

    def decision_context(self) -> DecisionContext:
        middle = self.output + self.text
        left = min(3_000, middle + self.summary)
        offers: list[Proposal] = []
        if self.output:
            offers.append(offer("elide", self.output * 9 // 10))
        if middle:
            offers.append(offer("summarize", middle + self.summary - left))
            offers.append(offer("leaf", middle + self.summary - left))
        return DecisionContext(
            at=self.at,
            prompt=self.prompt,
            messages=60,
            outside_tail=middle,
            limits=self.limits,
            proposals=tuple(offers),
            past=self.past,
        )

    def turn(self, number: int, policy: str) -> None:
        self.at += 20
        grown = self.tail + self.growth
        self.tail = min(grown, self.limits.tail)
        self.output += round((grown - self.tail) * self.tools)
        self.text += (grown - self.tail) - round((grown - self.tail) * self.tools)
        now = self.decision_context()
        decision = decide(now, SETTINGS, policy=policy)
        if isinstance(decision, Compact):
            self.carry_out(now, decision, number)
        self.past = after_turn(self.past)

    def carry_out(self, now: DecisionContext, decision: Compact, number: int) -> None:
        called = False
        for step in decision.proposals:
            if self.prompt <= decision.enough:
                break
            if step.calls:
                called = True
                self.summary = min(3_000, self.output + self.text + self.summary)
                self.output = self.text = 0
            else:
                kept = self.output - step.removes
                self.output, self.text = 0, self.text + kept
        after = self.prompt
        self.past = after_compaction(now, decision, prompt=after)
        self.events.append(
            Event(turn=number, code=decision.because.code, before=now.prompt, after=after, called=called)
        )

    def run(self, turns: int, policy: str) -> list[Event]:
        for number in range(turns):
            self.turn(number, policy)
        return self.events


def limits(context: int, **compression: float) -> Limits:
    return derive_limits(context, CompressionSettings(**compression))  # type: ignore[arg-type]  # shares


@EVERY
def test_hermes_a_65536_window_does_not_wait_until_97_percent(policy: str) -> None:
    session = Session(limits(65_536), growth=500)
    events = session.run(200, policy)
    assert events
    assert max(event.before for event in events) <= 49_536 + 500 < 0.77 * 65_536


@pytest.mark.parametrize("threshold", [0.5, 0.85, 0.95, 1.0])
def test_hermes_hygiene_does_not_fire_where_the_loop_compacts(threshold: float) -> None:
    """At 50 % it compacted on every turn."""
    compression = CompressionSettings(threshold=threshold)
    session = Session(derive_limits(200_000, compression))
    for number in range(400):
        session.turn(number, "runway")
        gateway = decide(session.decision_context(), SETTINGS, policy="hygiene")
        assert gateway.because.code == "below-hygiene"
    assert session.events


def test_hermes_hygiene_alone_does_not_compact_at_every_turn() -> None:
    events = Session(limits(200_000)).run(400, "hygiene")
    assert 2 <= len(events) <= 400 * 2_000 // (170_000 - 85_000) + 1


@EVERY
def test_hermes_anti_thrash_recovers(policy: str) -> None:
    """A session that was stuck goes on compacting once there is something to remove again."""
    session = Session(limits(128_000), growth=3_000)
    session.past = Past(fruitless=50, floor=30_000, fruitless_at=NOON, failures=0)
    events = session.run(120, policy)
    assert events
    assert session.past.fruitless == 0
    assert session.prompt < session.limits.wall


def test_an_irreducible_session_is_tried_rarely_and_the_wall_still_holds() -> None:
    """A head of 70,000 against a threshold of 64,000: no compaction can get below it."""
    session = Session(limits(128_000), head=70_000, growth=1_000)
    events = session.run(300, "runway")
    grown = 300 * 1_000
    assert 5 <= len(events) <= grown // session.limits.minimum_prune
    assert max(event.before for event in events) < session.limits.wall
    gaps = [later.turn - earlier.turn for earlier, later in pairwise(events)]
    assert min(gaps) >= 5, "not at every turn"


def test_lossless_a_livelock_cannot_put_off_what_is_due() -> None:
    """Every turn refreshed the cache there, so that deferred work never drained; here waiting ends by itself."""
    past = after_failure(Past(fruitless=1, floor=69_000, fruitless_at=NOON, undelivered=60_000), at=NOON)
    kept = 0
    for seconds in range(0, 700, 5):
        now = example_context(70_000, offer("summarize", 50_000), past=past, at=NOON + seconds)
        if isinstance(decide(now, SETTINGS), Compact):
            break
        kept += 1
        past = after_turn(past)
    assert kept == 600 // 5


@pytest.mark.parametrize("has_budget", [True, False], ids=["known window", "unknown window"])
@EVERY
def test_lossless_nothing_is_compacted_at_2_percent_of_a_million(policy: str, has_budget: bool) -> None:
    offers = (offer("elide", 9_000), offer("leaf", 9_000), offer("summarize", 15_000))
    context = 1_000_000 if has_budget else 128_000
    now = example_context(20_000, *offers, context=context, has_budget=has_budget, outside_tail=19_999)
    assert isinstance(decide(now, SETTINGS, policy=policy), Keep)


def test_lossless_the_guards_hold_at_every_size_below_the_ceiling_of_a_million() -> None:
    for prompt in range(20_000, 600_000, 20_000):
        now = example_context(prompt, offer("leaf", 17_600), context=1_000_000, outside_tail=prompt - 1)
        assert isinstance(decide(now, SETTINGS, policy="guarded"), Keep)


@EVERY
def test_lossless_what_was_learned_of_one_model_does_not_leak_to_the_next(policy: str) -> None:
    offers = (offer("elide", 20_000), offer("leaf", 70_000), offer("summarize", 70_000))
    stuck = Past(fruitless=9, floor=108_000, fruitless_at=NOON, undelivered=10**6)
    now = example_context(110_000, *offers, outside_tail=90_000, past=stuck)
    held = decide(now, SETTINGS, policy=policy)
    assert held.because.code == ("policy-never" if policy == "never" else "irreducible")
    switched = replace(now, past=after_switch(stuck))
    assert isinstance(decide(switched, SETTINGS, policy=policy), Compact) is (policy != "never")
