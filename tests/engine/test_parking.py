"""Parked summaries: written in idle time, published without a call, stale when their messages change."""

import json
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.compact.summary import extract
from lowwater.count.estimate import CharacterTokenizer
from lowwater.economics.bill import cost_of
from lowwater.errors import SummaryFailed
from lowwater.load.registry import load_registry
from lowwater.testing.fakes import (
    Act,
    RecordingSink,
    ScriptedClock,
    ScriptedSummarizer,
    fail,
    grow,
    refuse,
    write,
)
from lowwater.testing.invariants import Protected, Watch
from lowwater.testing.playing import exchanges
from lowwater.testing.sessions import Pauses, generate_session
from lowwater.values.decision import Compact
from lowwater.values.entries import Compacted
from lowwater.values.events import Compaction
from lowwater.values.settings import CompressionSettings, OutputSettings, Settings
from lowwater.values.summaries import SummaryRequest, Written
from lowwater.values.usage import Usage
from lowwater.values.view import Edited
from lowwater.wiring.library import Lowwater
from lowwater.wiring.request import PreparedRequest

MODEL = "claude-haiku-4-5"
SPENT = Usage(cache_read=30_000, uncached=400, output=900)
LONG = Settings(output=OutputSettings(quiet=True))
WINDOW = 70_000
NEAR = 50
"""Turns after which the threshold of that window is less than ten turns away."""


@cache
def recorded(seed: int = 1) -> list[Any]:
    form = generate_session("coding", seed=seed, turns=80, pauses=Pauses(coffee=0.0, overnight=0.0))
    return [json.loads(raw) for raw in form.as_anthropic().messages]


def told(request: SummaryRequest) -> Written:
    """The same summary whenever it is asked for the same, and a bill."""
    return Written(text=extract(request, CharacterTokenizer()), by="model", model=MODEL, usage=SPENT)


class Model(ScriptedSummarizer):
    """A summarizer that says which model it asks."""

    model = MODEL

    def __init__(self, *acts: Act) -> None:
        super().__init__(*(acts or (told,)))


class Talk:
    """A session that is played turn by turn against a provider that bills what is expected."""

    def __init__(
        self,
        *acts: Act,
        policy: str = "threshold",
        context: int | None = WINDOW,
        messages: list[Any] | None = None,
        **compression: Any,
    ) -> None:
        self.model, self.clock, self.sink = Model(*acts), ScriptedClock(), RecordingSink()
        settings = replace(LONG, compression=CompressionSettings(**compression))
        self.session = Lowwater(
            model=MODEL,
            policy=policy,
            settings=settings,
            summarizer=self.model,
            clock=self.clock,
            sinks=[self.sink],
        ).session()
        if context is not None:
            self.session.learn_context_length(context)
        self._exchanges = exchanges(recorded() if messages is None else messages)
        self.watch = Watch(Protected(first=3, last=20))

    @property
    def asked(self) -> int:
        """How often a model was asked for a summary."""
        return len(self.model.requests)

    @property
    def compactions(self) -> list[Compaction]:
        """What was compacted, but for results that are shortened as they come in."""
        return [event for event in self.sink.compactions if event.mode != "shorten"]

    def turn(self) -> PreparedRequest:
        """Take the next turn of the recording."""
        self.hear()
        return self.answer(self.session.prepare())

    def hear(self) -> None:
        """Append what is new before the next answer."""
        self._exchange = next(self._exchanges)
        self.session.append(self._exchange.new)

    def answer(self, request: PreparedRequest) -> PreparedRequest:
        """Record the answer to what was prepared."""
        self.watch.see(self.session.ledger, request.messages)
        assert self._exchange.answer is not None
        self.session.record(response(self._exchange.answer["content"], self.session.expected_usage()))
        self.clock.advance(10)
        return request

    def turns(self, count: int) -> "Talk":
        for _ in range(count):
            self.turn()
        return self

    def until_compacted(self, most: int = 40) -> PreparedRequest:
        """Take turns until the middle is compacted once more, and return the request that was sent then."""
        before = len(self.compactions)
        for _ in range(most):
            request = self.turn()
            if len(self.compactions) > before:
                return request
        raise AssertionError(f"no compaction in {most} turns")

    def until_parked(self, most: int = 80) -> "Talk":
        for _ in range(most):
            self.turn()
            if self.session.park():
                return self
        raise AssertionError(f"nothing parked in {most} turns")


def response(content: Any, usage: Usage) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": usage.uncached,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": 200,
        },
    }


def running(turns: int) -> list[Any]:
    """A conversation that is nearly all tool output, so that eliding is enough for a while."""
    messages: list[Any] = []
    for number in range(turns):
        call = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": {"command": f"run {number}"}}
        said = "\n".join(f"line {line} of the output of run {number}" for line in range(200))
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": said}
        messages += [
            {"role": "user", "content": f"Make step {number}."},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [_text(f"Step {number} is done.")]},
        ]
    return messages


def test_parking_asks_once_and_changes_neither_ledger_nor_view() -> None:
    talk = Talk().turns(NEAR)
    ledger, view = talk.session.ledger, talk.session.view()
    assert talk.session.park()
    assert talk.session.park(), "it is still ready"
    assert talk.asked == 1
    assert talk.session.ledger is ledger
    assert talk.session.view() == view


@pytest.mark.parametrize(
    ("policy", "turns", "options"),
    [
        ("threshold", 20, {}),
        ("rent-or-buy", 10, {"context": None}),
        ("never", NEAR, {"context": None}),
        ("threshold", NEAR, {"enabled": False}),
    ],
    ids=["far from the threshold", "little rent paid", "far from the wall", "switched off"],
)
def test_what_cannot_be_expected_to_be_used_is_not_asked_for(
    policy: str, turns: int, options: dict[str, Any]
) -> None:
    talk = Talk(policy=policy, **options).turns(turns)
    assert not talk.session.park()
    assert talk.asked == 0


def test_at_its_threshold_a_session_publishes_what_is_parked_and_asks_nobody() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.park()
    talk.until_compacted()
    (event,) = talk.sink.compactions
    assert (event.mode, event.summarizer, talk.asked) == ("summary", "model", 1)
    assert event.after < talk.session.status().threshold
    entries = [entry for entry in talk.session.ledger.entries if isinstance(entry, Compacted)]
    assert len(entries) == 1, "summary and edits in one entry"


@pytest.mark.parametrize(
    ("policy", "options", "codes"),
    [
        ("never", {"context": 40_000}, {"wall"}),
        ("never", {"context": None, "max_view_tokens": 30_000}, {"prune-falls-short", "prune-too-small"}),
    ],
    ids=["wall", "ceiling"],
)
def test_under_pressure_no_model_is_waited_for(policy: str, options: dict[str, Any], codes: set[str]) -> None:
    talk = Talk(policy=policy, **options).until_parked()
    talk.until_compacted()
    event = talk.sink.compactions[-1]
    assert event.because.code in codes
    assert (event.summarizer, talk.asked) == ("model", 1)


def test_over_a_warm_cache_it_is_published_once_the_rent_has_reached_what_is_left_of_its_price() -> None:
    talk = Talk(policy="rent-or-buy", context=None).until_parked()
    before = len(talk.sink.compactions)
    talk.until_compacted()
    event = talk.sink.compactions[before]
    assert (event.because.code, event.summarizer, talk.asked) == ("rent-paid", "model", 1)
    assert event.cost == 0, "it was billed when it was written"


def test_a_cold_call_publishes_it() -> None:
    talk = Talk(policy="rent-or-buy", context=None).until_parked()
    before = len(talk.sink.compactions)
    talk.clock.advance(301)
    talk.turn()
    event = talk.sink.compactions[before]
    assert event.because.code == "free-now"
    assert (event.summarizer, talk.asked) == ("model", 1)


def test_what_a_parked_summary_cost_is_billed_when_it_is_written() -> None:
    talk = Talk().turns(NEAR)
    cost = cost_of(SPENT, load_registry().find(MODEL))
    assert cost is not None
    before = talk.session.status().totals
    talk.session.park()
    after = talk.session.status().totals
    assert (before.summary_cost, after.summary_cost) == (0, cost)
    talk.until_compacted()
    assert talk.session.status().totals.summary_cost == cost, "and not again when it is published"


def test_by_hand_it_is_used_where_it_is_what_would_be_asked_for() -> None:
    parked, plain = Talk().turns(NEAR), Talk().turns(NEAR)
    assert parked.session.park()
    assert parked.session.compress() is not None
    assert plain.session.compress() is not None
    assert (parked.asked, plain.asked) == (1, 1)
    assert parked.session.view() == plain.session.view(), "the same bytes, parked or not"


@pytest.mark.parametrize("policy", ["threshold", "never", "runway", "hermes-classic"])
def test_at_the_moment_of_need_the_same_bytes_come_out_parked_or_not(policy: str) -> None:
    """Parked at the last moment, so that the span is the same."""
    requests = []
    for parks in (True, False):
        talk = Talk(policy=policy)
        talk.hear()
        while not isinstance(talk.session.deliberate(), Compact):
            talk.answer(talk.session.prepare())
            talk.hear()
        if parks:
            assert talk.session.park()
        asked = talk.asked
        requests.append(talk.session.prepare().as_anthropic())
        assert talk.sink.compactions[-1].summarizer == "model"
        assert talk.asked == (asked if parks else asked + 1)
    assert requests[0] == requests[1]


def test_a_focus_asks_for_another_summary() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.park()
    assert talk.session.compress("the failing tests") is not None
    assert [request.focus for request in talk.model.requests] == ["", "the failing tests"]


@pytest.mark.parametrize("edited", [10, -1], ids=["inside", "behind"])
def test_it_is_stale_when_the_client_edits_a_message_inside_its_range_only(edited: int) -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.park()
    numbers = set(talk.model.requests[0].numbers)
    messages = talk.session.history()
    at = next(i for i in range(edited, len(messages)) if messages[i]["role"] == "user") if edited > 0 else -1
    messages[at] = {
        "role": messages[at]["role"],
        "content": [*_texts(messages[at]), _text("But first rest.")],
    }
    assert (at + 1 in numbers) == (edited > 0)
    talk.session.prepare(messages)
    assert talk.session.park()
    assert talk.asked == (2 if edited > 0 else 1)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _texts(message: Any) -> list[Any]:
    content = message["content"]
    return [_text(content)] if isinstance(content, str) else list(content)


def test_it_is_stale_after_a_rewind_that_took_its_messages_away() -> None:
    talk = Talk().turns(30)
    talk.session.checkpoint("early")
    talk.turns(NEAR - 30)
    assert talk.session.park()
    talk.session.rewind("early", discard_later=True)
    assert not talk.session.park(), "what is left needs no summary"
    assert talk.session.compress() is not None
    assert talk.asked == 2


def test_it_is_stale_after_a_rewind_to_before_the_summary_that_it_updates() -> None:
    talk = Talk()
    talk.until_compacted(60)
    talk.until_parked()
    assert talk.model.requests[-1].previous
    asked = talk.asked
    talk.session.rewind("before-compaction-1")
    assert talk.session.compress() is not None
    assert talk.asked == asked + 1
    assert not talk.model.requests[-1].previous


def test_it_is_not_stale_after_an_elision_inside_its_range() -> None:
    talk = Talk(policy="runway", messages=running(40)).until_parked()
    numbers = talk.model.requests[0].numbers
    talk.until_compacted()
    (event,) = talk.sink.compactions
    assert event.mode == "prune"
    edited = {item.number for item in talk.session.ledger.view.items if isinstance(item, Edited)}
    assert edited & set(numbers)
    assert talk.session.park()
    assert talk.asked == 1


@pytest.mark.parametrize(
    "act",
    [fail(RuntimeError("no")), fail(SummaryFailed("no", "auth")), refuse, write(""), grow],
    ids=["raises", "has no key", "refuses", "says nothing", "grows"],
)
def test_a_failing_summarizer_parks_nothing_loses_nothing_and_rests(act: Act) -> None:
    talk = Talk(act).turns(NEAR)
    ledger = talk.session.ledger
    assert not talk.session.park()
    tried = talk.asked
    assert tried > 0
    assert not talk.session.park(), "the summarizer cools down"
    assert talk.asked == tried
    assert talk.session.ledger is ledger
    talk.clock.advance(61)
    talk.session.park()
    assert talk.asked > tried


def test_a_reset_forgets_it() -> None:
    talk = Talk().turns(NEAR)
    assert talk.session.park()
    talk.session.reset()
    assert talk.session.compress() is not None
    assert talk.asked == 2


@pytest.mark.parametrize("policy", ["rent-or-buy", "threshold", "runway", "never"])
def test_the_invariants_hold_when_every_pause_is_used_for_parking(policy: str) -> None:
    talk = Talk(policy=policy, context=None if policy == "rent-or-buy" else WINDOW)
    for _ in range(79):
        talk.turn()
        talk.session.park()
    summaries = [event for event in talk.sink.compactions if event.mode == "summary"]
    assert summaries
    assert {event.summarizer for event in summaries} == {"model"}
    assert {event.cost for event in summaries} == {0}, "each was written before it was needed"
