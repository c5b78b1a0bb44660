"""Where a size forces a compaction, what costs least until the next one is bought: a deeper cut that lasts, unless it loses too much."""

import json
from itertools import pairwise

import pytest
from msgspec.structs import replace

from lowwater.core.decisions import PricedPlan
from lowwater.core.events import Compaction
from lowwater.core.limits import TURNS_BETWEEN
from lowwater.core.turns.lasting import cost_per_call
from lowwater.core.turns.pricing import PricingContext, pricing_for
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import CompressionSettings, OutputSettings, Settings
from lowwater.testing.decision_contexts import offer, priced_plan
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from lowwater.testing.invariants import Protected, Watch
from tests.generated import generate_session

MODEL = "claude-opus-5-5"
MOST, GROWTH = 30_000, 1_000


def pricing(*, calls: int = 40) -> PricingContext:
    """A prompt of some 30,000 tokens in a session of so many calls."""
    session = Lowwater(model=MODEL, store="memory:").session()
    session.prepare([{"role": "user", "content": "word " * 1_000}])
    shared = internals(session).shared
    return replace(pricing_for(shared.state, shared.setup, 0, 0.0), prompt=MOST, calls=calls)


def plan(removes: int, *, price: int) -> PricedPlan:
    return replace(priced_plan(offer("elide", removes)), removes=removes, price=price)


def test_of_two_at_one_price_the_deeper_costs_less_per_call() -> None:
    at = pricing()
    mild, deep = plan(6_000, price=10**8), plan(24_000, price=10**8)
    per_call = [cost_per_call(each, at, most=MOST, growth=GROWTH) for each in (mild, deep)]
    assert per_call[1] < per_call[0] / 2, "it serves four times as many calls, and they read less"


def test_what_is_lost_with_the_deeper_cut_can_make_it_the_dearer_one() -> None:
    at = pricing()
    mild, deep = plan(6_000, price=10**8), plan(24_000, price=10**10)
    per_call = [cost_per_call(each, at, most=MOST, growth=GROWTH) for each in (mild, deep)]
    assert per_call[0] < per_call[1]


def test_a_plan_is_not_credited_with_more_calls_than_the_session_has_had() -> None:
    young, old = pricing(calls=6), pricing(calls=400)
    mild, deep = plan(6_000, price=10**8), plan(24_000, price=3 * 10**8)
    for at, wins in ((young, mild), (old, deep)):
        assert min((mild, deep), key=lambda each: cost_per_call(each, at, most=MOST, growth=GROWTH)) is wins


def played(
    settings: Settings, *, window: int | None = None, policy: str = "rent-or-buy", kind: str = "coding"
) -> list[tuple[int, Compaction]]:
    """Play a generated session and return its forced compactions, each with its turn; what is sent keeps every invariant."""
    sink, clock, watch = RecordingSink(), ScriptedClock(), Watch(Protected())
    session = Lowwater(
        model=MODEL, store="memory:", policy=policy, settings=settings, sinks=[sink], clock=clock
    ).session()
    if window is not None:
        session.learn_context_length(window)
    found: list[tuple[int, Compaction]] = []
    turn = 0
    for raw in generate_session(kind, seed=5, turns=70).as_anthropic().messages:  # type: ignore[arg-type]
        message = json.loads(raw)
        if message["role"] != "assistant":
            session.append(message)
            continue
        known = len(sink.compactions)
        request = session.prepare(offers_recall=True)
        if policy == "rent-or-buy":
            watch.see(internals(session).ledger, request.messages)
        new = [event for event in sink.compactions[known:] if event.mode != "shorten"]
        found += [(turn, event) for event in new if event.because.code.startswith(("wall", "ceiling"))]
        usage = {"input_tokens": request.tokens, "output_tokens": 40}
        session.record({"type": "message", "model": MODEL, "usage": usage, **message})
        clock.advance(20)
        turn += 1
    return found


QUIET = Settings(output=OutputSettings(quiet=True))
CEILING = Settings(output=OutputSettings(quiet=True), compression=CompressionSettings(max_view_tokens=30_000))


@pytest.mark.parametrize(
    ("settings", "window", "code"),
    [(QUIET, 40_000, "wall-to-last"), (CEILING, None, "ceiling-to-last")],
    ids=["wall", "ceiling"],
)
def test_a_forced_compaction_says_how_long_it_lasts_and_is_no_more_frequent_than_under_never(
    settings: Settings, window: int | None, code: str
) -> None:
    forced = played(settings, window=window)
    bought = [event for _, event in forced if event.because.code == code]
    assert bought
    assert all(int(event.because.facts["calls"]) >= TURNS_BETWEEN for event in bought)
    mildest = played(settings, window=window, policy="never")
    assert len(forced) <= len(mildest)
    turns = [turn for turn, _ in forced]
    assert (
        min((later - earlier for earlier, later in pairwise(turns)), default=TURNS_BETWEEN) >= TURNS_BETWEEN
    )
