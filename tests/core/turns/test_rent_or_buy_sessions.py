"""Sessions under rent-or-buy: what is bought, when, and what the whole session is billed."""

import json
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_message
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from tests.generated import GeneratedSession, Pauses, generate_session

MODEL = "claude-opus-5-5"
NO_PAUSES = Pauses(coffee=0.0, overnight=0.0)


class Billed(NamedTuple):
    """A session that was played to its end, and what its calls cost in nano-dollars."""

    session: Session
    cost: int
    compactions: list[Compaction]


@cache
def coding(turns: int, *, pauses: bool = False) -> GeneratedSession:
    return generate_session("coding", seed=1, turns=turns, pauses=Pauses() if pauses else NO_PAUSES)


def played(
    recorded: GeneratedSession, policy: str = "rent-or-buy", *, model: str = MODEL, **options: Any
) -> Billed:
    """Play a session at its recorded times against a provider that bills just what is expected."""
    clock, sink, cost = ScriptedClock(), RecordingSink(), 0
    session = Lowwater(model=model, policy=policy, clock=clock, sinks=[sink], **options).session()
    facts = load_registry().find(model)
    form, new = recorded.as_anthropic(), list[Any]()
    answers = [
        at
        for message, at in zip(recorded.messages, recorded.times, strict=True)
        if message.role == "assistant"
    ]
    times = iter(answers)
    for raw in form.messages:
        message = json.loads(raw)
        if message["role"] != "assistant":
            new.append(message)
            continue
        clock.advance(max(0.0, next(times) - clock.now()))
        session.append(new)
        session.prepare(system=json.loads(form.system), tools=json.loads(recorded.tools_json("anthropic")))
        usage = replace(internals(session).expected_usage, output=len(raw) // 4)
        cost += cost_of(usage, facts) or 0
        session.record(as_message(message["content"], usage, model))
        new = []
    return Billed(session, cost, sink.compactions)


def test_a_long_session_costs_less_than_under_the_policies_with_a_fixed_trigger() -> None:
    """A window of a million tokens never fills up here, and carrying everything to its end is what costs."""
    recorded = coding(120)
    ours = played(recorded)
    assert ours.compactions
    for policy in ("never", "runway", "hermes-classic"):
        assert ours.cost < 0.9 * played(recorded, policy).cost


def test_over_a_warm_cache_a_plan_is_bought_when_its_rent_reaches_its_price_or_waiting_is_in_vain() -> None:
    bought = played(coding(60)).compactions + played(coding(120)).compactions
    codes = {event.because.code for event in bought}
    assert codes <= {"rent-paid", "waiting-in-vain"}
    assert "waiting-in-vain" in codes
    for event in bought:
        rent, price = (float(str(event.because.facts[name]).removeprefix("$")) for name in ("rent", "price"))
        if event.because.code == "rent-paid":
            assert price <= rent < 1.35 * price, "as soon as it was due, give or take what one call adds"
        else:
            assert 0 < rent < price


def test_what_was_bought_pays_no_more_rent() -> None:
    events = played(coding(120)).compactions
    assert all(later.before > earlier.after for earlier, later in pairwise(events))
    assert len(events) < 8, "and one purchase is not followed by the next a few calls later"


def test_after_a_pause_longer_than_the_cache_lives_a_prune_is_free() -> None:
    session = Lowwater(
        model=MODEL, policy="rent-or-buy", clock=(clock := ScriptedClock()), sinks=()
    ).session()
    for number in range(30):
        session.append(
            [
                {"role": "user", "content": f"step {number}"},
            ]
        )
        session.prepare()
        call = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"run {number}"}}
        session.record(as_message([call], internals(session).expected_usage, MODEL))
        said = "\n".join(f"line {number} {line} of the output" for line in range(40))
        session.append(
            [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": said}],
                }
            ]
        )
        session.prepare()
        session.record(
            as_message([{"type": "text", "text": "done"}], internals(session).expected_usage, MODEL)
        )
    assert (decision := internals(session).decision)
    assert decision.because.code != "free-now"
    clock.advance(3_601)
    session.append([{"role": "user", "content": "and now?"}])
    session.prepare()
    assert (decision := internals(session).decision)
    assert decision.because.code == "free-now"
    assert internals(session).expected_usage.cache_read == 0


def test_explain_prints_the_rent_the_price_and_what_would_have_to_change() -> None:
    session = played(coding(30)).session
    told = session.explain()
    for words in ("rent paid so far", "price now", "saves at each call", "more calls over a warm cache", "$"):
        assert words in told


def test_without_a_known_price_nothing_is_told_in_dollars() -> None:
    session = played(coding(30), model="claude-nobody-knows-9").session
    assert "$" not in session.explain()
    assert "input tokens" in session.explain()


def test_without_a_model_an_extracted_summary_is_bought_when_it_pays() -> None:
    events = played(coding(120)).compactions
    assert {event.mode for event in events} == {"summary"}
    assert all(event.cost == 0 for event in events), "no model was asked"
    assert all(event.before < 100_000 for event in events), "long before the wall at a million tokens"


def test_without_a_model_and_without_prices_a_small_session_is_not_compacted_again_and_again() -> None:
    """Only the disturbance costs anything there, besides writing the tail again: without it, more is bought."""
    recorded = generate_session("support", seed=2, turns=120, target_tokens=30_000, pauses=NO_PAUSES)

    def compactions(disturbed_calls: float) -> int:
        settings = Settings(compression=CompressionSettings(disturbed_calls=disturbed_calls))
        billed = played(recorded, model="somebodys-own-model-7b", settings=settings)
        assert billed.session.status().totals.turns == 120
        return len(billed.compactions)

    assert 0 < compactions(1.0) < compactions(0.0) <= 120 // 5


def test_the_users_ceiling_forces_a_compaction_before_the_rent_is_paid() -> None:
    settings = Settings(compression=CompressionSettings(max_view_tokens=30_000))
    billed = played(coding(60), settings=settings)
    assert billed.session.status().threshold == 30_000
    forced = [event for event in billed.compactions if event.because.code == "ceiling-to-last"]
    assert forced
    assert billed.session.status().prompt < played(coding(60)).session.status().prompt


def test_a_reset_forgets_rent_and_cache_belief() -> None:
    session = played(coding(30)).session
    assert internals(session).expected_usage.cache_read == 0, "no call is under way"
    internals(session).reset()
    assert session.status().compaction_count == 0
    session.append([{"role": "user", "content": "again"}])
    session.prepare()
    assert internals(session).expected_usage.cache_read == 0, "nothing is known to be in the cache"


@pytest.mark.parametrize(
    "model", ["gpt-6.1-sol", "gpt-5.2", "deepseek-v4-pro", "gemini-3.6-flash", "kimi-k3", "qwen3.8-max"]
)
def test_under_every_providers_rules_a_session_that_ends_at_the_wrong_moment_costs_little_more(
    model: str,
) -> None:
    """A purchase that the session's end leaves without use is what any rule without foresight risks (docs/economics.md)."""
    recorded = coding(40)
    assert played(recorded, model=model).cost < 1.26 * played(recorded, "never", model=model).cost


def test_what_was_undone_by_hand_stays_undone_for_a_while_and_pays_from_then_on() -> None:
    session = played(coding(60)).session
    compacted = session.status()
    session.rewind("before-compaction-1")
    assert session.status().prompt > compacted.prompt
    session.append([{"role": "user", "content": "and now?"}])
    session.prepare()
    assert (decision := internals(session).decision)
    assert decision.because.code == "undone"
    assert session.status().compaction_count == compacted.compaction_count
