"""Accounts of a session that was really played: predictions come true, and all who count agree."""

from typing import Any, Literal

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.cadence import cadence
from lowwater.core.accounts.efficiency import efficiency
from lowwater.core.accounts.payback import paybacks
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_message
from lowwater.core.stored import Account
from lowwater.observe.prometheus import PrometheusSink
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, ModelSettings, OutputSettings, Settings
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import ScriptedClock
from tests.generated import generate_session

MODEL = "claude-opus-5-5"


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was played, its account, and a sink that was told of it."""

    session: Session
    account: Account
    sink: PrometheusSink

    def counted(self, name: str) -> float:
        """Return what the sink counted, over all labels."""
        families = text_string_to_metric_families(self.sink.text())
        samples = (sample for family in families for sample in family.samples)
        return sum(sample.value for sample in samples if sample.name == name)


class Agent:
    """Plays a session over a cache that does what is expected of it, a call every ten seconds."""

    def __init__(self, *, compacts: bool = True, ttl: Literal["5m", "1h"] = "5m") -> None:
        self.clock, self.sink = ScriptedClock(), PrometheusSink()
        settings = Settings(
            output=OutputSettings(quiet=True),
            compression=CompressionSettings(enabled=compacts),
            model=ModelSettings(cache_ttl=ttl),
        )
        self.library = Lowwater(
            store="memory:", model=MODEL, settings=settings, clock=self.clock, sinks=[self.sink]
        )
        self.session = self.library.session("s")
        form = generate_session("coding", seed=3, model=MODEL, target_tokens=90_000).as_anthropic()
        said: list[Any] = [msgspec.json.decode(raw) for raw in form.messages]
        self.left = [exchange for exchange in exchanges(said) if exchange.answer is not None]
        self.system = msgspec.json.decode(form.system)

    def play(self, turns: int | None = None) -> Played:
        """Play so many turns more, or all."""
        for exchange in self.left[:turns]:
            assert exchange.answer is not None
            self.clock.advance(10.0)
            self.session.append(exchange.new)
            self.session.prepare(system=self.system)
            usage = replace(internals(self.session).expected_usage, output=100)
            self.session.record(as_message(exchange.answer["content"], usage, MODEL))
        self.left = self.left[turns:] if turns is not None else []
        account = self.library.store.accounts(["s"])[0]
        return Played(session=self.session, account=account, sink=self.sink)


@pytest.fixture(scope="module", params=["5m", "1h"])
def ttl(request: Any) -> Any:
    """Every account has to come out for both lifetimes of the cache."""
    return request.param


@pytest.fixture(scope="module")
def played(ttl: Any) -> Played:
    return Agent(ttl=ttl).play()


def test_where_the_cache_is_as_foreseen_a_compaction_costs_what_was_predicted(played: Played) -> None:
    bought = paybacks(played.account, load_registry())
    events = [event for event in played.account.events if isinstance(event, Compaction)]
    predicted = {event.number: event.price for event in events}
    assert bought, "the session is too short to be compacted"
    for each in bought:
        if each.price is not None:
            assert each.price == pytest.approx(predicted[each.numbers[-1]], rel=0.2), each
        if each.turns is not None and each.predicted is not None:
            assert each.turns == pytest.approx(each.predicted, abs=1.5), each
    assert any(each.turns for each in bought)


def test_account_status_and_sink_count_the_same(played: Played) -> None:
    totals, total = played.session.status().totals, efficiency([played.account], load_registry()).total
    assert total.cost is not None
    assert total.summary_cost is not None
    assert (total.turns, total.prompt, total.cache_read) == (totals.turns, totals.prompt, totals.cache_read)
    assert (total.passes, total.reclaimed) == (totals.compactions, totals.reclaimed)
    assert totals.cost == total.cost + total.summary_cost
    assert played.counted("lowwater_turns_total") == total.turns
    assert played.counted("lowwater_cost_dollars_total") == pytest.approx(total.cost / 1e9)
    assert played.counted("lowwater_removed_tokens_total") == total.saved
    assert played.counted("lowwater_compactions_total") == total.passes
    found = cadence([played.account])
    assert (found.prunes, found.earliest_changed) == (totals.prunes, totals.earliest_changed)


def test_net_is_what_playing_it_without_compaction_costs_more(played: Played, ttl: Any) -> None:
    untouched = Agent(compacts=False, ttl=ttl).play().session.status().totals
    totals, total = played.session.status().totals, efficiency([played.account], load_registry()).total
    assert untouched.cost is not None
    assert totals.cost is not None
    assert untouched.compactions == 0
    assert total.net == pytest.approx(untouched.cost - totals.cost, rel=0.02)


@pytest.mark.parametrize("calls", [0, 3])
def test_a_compaction_that_is_rewound_is_told_from_the_next_call(calls: int) -> None:
    agent = Agent()
    agent.play(30)
    agent.clock.advance(1.0)
    agent.session.compress()
    agent.play(calls)
    agent.session.rewind("before-compaction-1")
    (found,) = paybacks(agent.play(2).account, load_registry())
    assert (found.over, found.counted) == ("undone", max(0, calls - 1))
