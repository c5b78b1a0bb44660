"""The engine and the replay decide by one rule: on the same offers they buy the same, and on the same session much the same."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from lowwater.adapters.models import load_registry
from lowwater.core.decisions import Compact, PricedPlan
from lowwater.core.formats.codec import as_completion, decode_messages
from lowwater.core.messages import Format
from lowwater.core.policies.rent_or_buy import rent_or_buy
from lowwater.lab.course import Action, CoursePrune, CourseState, Summarise, after
from lowwater.lab.replay.live import ReplaySummarizer
from lowwater.lab.replay.script import ReplayScript, course_for, script_of, sheet_of
from lowwater.lab.schedules import CourseOffer, RentOrBuy, Tally
from lowwater.logs.recording import RecordedMessage, Recording
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import Settings
from lowwater.testing.decision_contexts import candidates, example_context, offer
from lowwater.testing.fakes import ScriptedClock
from tests.generated import Kind, generate_session
from tests.golden.conversations import FROZEN, RECORDED, TRANSCRIPTS, Conversation, frozen, recorded

BOUGHT = frozenset({"rent-paid", "waiting-in-vain", "free-now"})
KEPT = frozenset({"rent-below-price", "too-young-to-pay", "nothing-to-buy"})
KINDS: tuple[Kind, ...] = ("coding", "research", "support")
MODELS = ("claude-opus-5-5", "claude-opus-4-5", "gpt-6-astra", "deepseek-chat")
TURNS, NEAR = 120, 5
GENERATED = tuple(f"{kind}-{seed}" for kind in KINDS for seed in range(1, 6))


class Call(Struct, frozen=True, kw_only=True):
    """The plans that could be bought at a call of the engine, and which of them was; None if none was."""

    plans: tuple[PricedPlan, ...]
    bought: int | None


class Played(Struct, frozen=True, kw_only=True):
    """One session: the engine's calls that the rule decided, when it bought, and the session as a course."""

    calls: tuple[Call, ...]
    purchases: tuple[int, ...]
    tally: Tally


def script_from(conversation: Conversation) -> ReplayScript:
    messages = []
    for turn in conversation.turns:
        raws = [msgspec.json.encode(each) for each in (*turn.new, *turn.answer)]
        decoded = decode_messages(raws, msgspec.convert(conversation.format, Format))
        at = [turn.at] * (len(decoded) - 1) + [turn.answered_at]
        messages += [RecordedMessage(message=each, at=then) for each, then in zip(decoded, at, strict=True)]
    return script_of(Recording(id=conversation.name, agent="tests", path="", messages=tuple(messages)))


def script_named(name: str) -> tuple[ReplayScript, str]:
    """Return a session and the model to play it on."""
    if name in FROZEN:
        return script_from(frozen(name)), MODELS[FROZEN.index(name) % len(MODELS)]
    if name in RECORDED:
        return script_from(recorded(name, RECORDED[name])), MODELS[list(RECORDED).index(name) % len(MODELS)]
    kind, seed = name.split("-")
    made = generate_session(KINDS[KINDS.index(kind)], seed=int(seed), turns=TURNS)
    messages = [
        RecordedMessage(message=message, at=at) for message, at in zip(made.messages, made.times, strict=True)
    ]
    recording = Recording(id=name, agent="tests", path="", messages=tuple(messages))
    return script_of(recording), MODELS[GENERATED.index(name) % len(MODELS)]


@lru_cache
def played(name: str) -> Played:
    """Play a session through the engine, billed as it expects."""
    script, model = script_named(name)
    found = load_registry().find(model)
    course = course_for(script, (), model=model, recorded=model)
    clock, calls, purchases = ScriptedClock(script.exchanges[0].at), list[Call](), list[int]()
    library = Lowwater(
        model=model,
        policy="rent-or-buy",
        store="memory:",
        clock=clock,
        summarizer=[ReplaySummarizer(found, is_own=True)],
        settings={"output": {"quiet": True}, "model": {"cache_ttl": "5m"}},  # courses know no other lifetime
    )
    session = library.session(name)
    for turn, exchange in enumerate(script.exchanges):
        clock.advance(max(0.0, exchange.at - clock.now()))
        session.append([msgspec.Raw(raw) for raw in exchange.new])
        session.prepare()
        state = internals(session).shared.state
        decision, offered = state.decision, state.candidates
        assert decision is not None
        assert offered is not None
        plans = [plan.plan for plan in offered.plans]
        if decision.because.code in BOUGHT:
            assert isinstance(decision, Compact)
            calls.append(Call(plans=offered.plans, bought=plans.index(decision.proposals)))
            purchases.append(turn)
        elif decision.because.code in KEPT:
            calls.append(Call(plans=offered.plans, bought=None))
        usage = msgspec.structs.replace(internals(session).expected_usage, output=course.turns[turn].output)
        session.record(as_completion(msgspec.Raw(exchange.answer), usage, model))
    library.close()
    return Played(calls=tuple(calls), purchases=tuple(purchases), tally=Tally(course, sheet_of(found)))


class OnTheseOffers(RentOrBuy):
    """The replay's policy, with offers from elsewhere."""

    given: Sequence[CourseOffer] = ()

    def offers(self, _turn: int, _state: CourseState) -> Iterator[CourseOffer]:
        yield from self.given


def rule_terms(made: CourseOffer | PricedPlan) -> dict[str, Any]:
    """Return what the rule decides by."""
    names = ("removes", "rent", "price", "saves", "worth", "should_buy_early", "wait")
    return {name: getattr(made, name) for name in names}


def check_the_replay_decides_alike(session: Played) -> int:
    """Give the engine's plans to the replay, at each call; return how many calls there were."""
    for call in session.calls:
        policy = OnTheseOffers(session.tally)
        policy.given = [
            CourseOffer(action=Summarise(upto=at), **rule_terms(plan)) for at, plan in enumerate(call.plans)
        ]
        action = policy(0, CourseState())
        assert (None if action is None else action.upto) == call.bought
    return sum(bool(call.plans) for call in session.calls)


def check_the_engine_decides_alike(session: Played) -> tuple[int, ...]:
    """Play the session as a course, and give the replay's offers to the engine's policy; return when the replay bought."""
    tally, state, purchases = session.tally, CourseState(), list[int]()
    policy = RentOrBuy(tally)
    for turn in range(tally.count):
        if not tally.edges[turn]:
            continue
        plans: dict[PricedPlan, Action] = {}
        for made in policy.offers(turn, state):
            mechanism = "elide" if isinstance(made.action, CoursePrune) else "summarize"
            step = offer(mechanism, max(1, made.removes))
            plans[PricedPlan(plan=(step,), still_cached=0, rewritten=0, **rule_terms(made))] = made.action
        decision = rent_or_buy(
            example_context(70_000, candidates=candidates(*plans), context=200_000), Settings()
        )
        action = policy(turn, state)
        bought = [
            chosen
            for plan, chosen in plans.items()
            if isinstance(decision, Compact) and plan.plan == decision.proposals
        ]
        assert bought == ([] if action is None else [action])
        if action is not None:
            purchases.append(turn)
            state = after(state, action)
    return tuple(purchases)


def check(names: Sequence[str], *, near: float, compactions: tuple[float, float]) -> None:
    """Check every decision, and how far the schedules agree: of all purchases, the share that the other makes within five calls.

    Schedules differ for other reasons than the rule: a course has one place to start a prune at, summaries of one length and
    a fixed tail.
    """
    compared = matched = 0
    ours, theirs = list[int](), list[int]()
    for name in names:
        session = played(name)
        compared += check_the_replay_decides_alike(session)
        on_course = check_the_engine_decides_alike(session)
        matched += matches(session.purchases, on_course) + matches(on_course, session.purchases)
        ours += session.purchases
        theirs += on_course
    assert compared > 10 * len(names)
    assert matched / (len(ours) + len(theirs)) >= near
    assert compactions[0] <= len(ours) / len(theirs) <= compactions[1]


def matches(some: Sequence[int], others: Sequence[int]) -> int:
    return sum(any(abs(turn - other) <= NEAR for other in others) for turn in some)


@pytest.mark.parametrize(
    "names",
    [pytest.param(FROZEN, id="frozen"), pytest.param(GENERATED, id="generated", marks=pytest.mark.full)],
)
def test_engine_and_replay_decide_alike_on_the_same_offers(names: Sequence[str]) -> None:
    check(names, near=0.35, compactions=(1, 2.1))


@pytest.mark.full
@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="no recorded sessions on this machine")
def test_engine_and_replay_decide_alike_on_recorded_sessions() -> None:
    check(tuple(RECORDED), near=0.35, compactions=(0.9, 2.1))
