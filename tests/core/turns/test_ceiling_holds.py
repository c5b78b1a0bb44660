"""The wall and `max_view_tokens` hold, and keeping them does not thrash: head, tail and newest results shrink where they must."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from lowwater.core.events import Compaction
from lowwater.core.limits import TURNS_BETWEEN
from lowwater.core.view import Summary
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, OutputSettings, Settings
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import RecordingSink, ScriptedClock
from lowwater.testing.invariants import Protected, Watch
from tests.core.turns.test_invariants import RECORDED, recorded
from tests.generated import generate_session

MODEL = "claude-sonnet-4-5"
TASK = {"role": "user", "content": "Mend the failing tests of the parser, and tell me why they failed."}
SYSTEM = "You are a careful engineer. " * 20
AS_COUNTED, ABOVE_THE_COUNT = 1.0, 1.8
"""What the provider reports for each token that we count."""


class Sent(Struct, frozen=True, kw_only=True):
    """One request: its size as the provider counts it, what the turn added to it, and what was done before."""

    tokens: int
    added: int
    irreducible: int
    compacted: bool
    """Something that was sent before was changed."""
    forced: bool
    """It was changed because it had to be made smaller, not because that pays."""
    shortened: bool
    """Only results that are new were shortened."""
    said: tuple[str, ...]
    """The codes of the decisions to leave it as it is."""


def turn(number: int, calls: int, words: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """An answer with parallel calls, and their results."""
    uses, results = [], []
    for call in range(calls):
        name = ("Bash", "Read", "Grep", "TodoWrite")[(number + call) % 4]
        use = {"type": "tool_use", "id": f"t{number}_{call}", "name": name, "input": {"path": f"m{call}.py"}}
        text = " ".join(f"value_{(number * 7919 + call * 104729 + at) % 99991}" for at in range(words))
        uses.append(use)
        results.append({"type": "tool_result", "tool_use_id": use["id"], "content": text})
    answer = {"role": "assistant", "content": [{"type": "text", "text": f"Step {number}."}, *uses]}
    return answer, {"role": "user", "content": results}


def play(
    turns: Iterator[tuple[dict[str, Any], Sequence[dict[str, Any]]]],
    *,
    ceiling: int | None = None,
    window: int | None = None,
    factor: float | None = None,
    policy: str = "rent-or-buy",
    is_chat: bool = False,
) -> list[Sent]:
    """Play answers and what follows each; the provider reports `factor` tokens for each that we count, or nothing."""
    system = None if is_chat else SYSTEM
    sink, clock = RecordingSink(), ScriptedClock(1_000.0)
    chosen = Settings(
        compression=CompressionSettings(max_view_tokens=ceiling), output=OutputSettings(quiet=True)
    )
    session = Lowwater(model=MODEL, policy=policy, settings=chosen, sinks=[sink], clock=clock).session()
    watch = Watch(Protected())
    if window is not None:
        session.learn_context_length(window)
    session.append(TASK)
    sent: list[Sent] = []
    before = 0
    for answer, new in turns:
        seen, skipped = len(sink.compactions), len(sink.skips)
        scale = factor or session.prepare(system=system).tokens / internals(session).ledger.view.total_tokens
        added = round(scale * (_appended(session) - before))
        request = session.prepare(system=system)
        watch.see(internals(session).ledger, request.messages)
        modes = [event.mode for event in sink.compactions[seen:]]
        tokens = round(factor * internals(session).ledger.view.total_tokens) if factor else request.tokens
        sent.append(
            Sent(
                tokens=tokens,
                added=added,
                irreducible=round(scale * irreducible(session)),
                compacted=any(mode != "shorten" for mode in modes),
                forced=any(_is_forced(event) for event in sink.compactions[seen:]),
                shortened="shorten" in modes,
                said=tuple(event.because.code for event in sink.skips[skipped:]),
            )
        )
        before = _appended(session)
        session.record(_answered(answer, tokens if factor else 0, is_chat=is_chat))
        clock.advance(20)
        for message in new:
            session.append(message)
    return sent


def _is_forced(event: Compaction) -> bool:
    return event.mode != "shorten" and event.because.code.startswith(("ceiling", "wall"))


def _answered(answer: dict[str, Any], tokens: int, *, is_chat: bool) -> dict[str, Any]:
    if not is_chat:
        usage = {"input_tokens": tokens, "output_tokens": 40}
        return {"type": "message", "model": MODEL, "stop_reason": "tool_use", "usage": usage, **answer}
    choice = {"index": 0, "finish_reason": "stop", "message": answer}
    usage = {"prompt_tokens": tokens, "completion_tokens": 40, "total_tokens": tokens + 40}
    return {"object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}


def _appended(session: Session) -> int:
    return internals(session).ledger.view.original_tokens


def irreducible(session: Session) -> int:
    """Return what no compaction can remove: system prompt, tools, what users said, the newest answer and a line for each result."""
    view = internals(session).ledger.view
    items = list(view.items)
    newest = max((at for at, item in enumerate(items) if item.message.role == "assistant"), default=0)
    tokens = view.preamble_tokens
    for at, item in enumerate(items):
        if isinstance(item, Summary):
            tokens += 300
        elif item.message.results:
            tokens += 60 * len(item.message.results) if at >= newest else 0
        elif item.message.role != "assistant" or at == newest:
            tokens += item.tokens
    return tokens


def check(sent: Sequence[Sent], limit: int, *, only_forced: bool = False) -> None:
    """The limit holds unless it cannot, and what was sent is changed at most once in five turns unless a turn is very large.

    With `only_forced`, changes that were bought because they pay do not count, and those that faster growth than before made
    necessary are allowed: room is left for several turns as large as the newest ones, those above a fifth left out.
    """
    for at, request in enumerate(sent):
        assert request.tokens <= limit or request.irreducible > limit, (at, request)
    changed = [at for at, each in enumerate(sent) if (each.forced if only_forced else each.compacted)]
    for earlier, later in pairwise(changed):
        between = sent[earlier : later + 1]
        large = any(request.added > limit // TURNS_BETWEEN for request in between)
        tight = any(
            request.irreducible + TURNS_BETWEEN * max(each.added for each in between) > limit
            for request in between
        )
        newest = sent[max(0, earlier - TURNS_MEASURED) : earlier + 1]
        usual = [request for request in newest if request.added <= limit // TURNS_BETWEEN]
        faster = only_forced and _mean(sent[earlier + 1 : later + 1]) > _mean(usual or newest)
        assert later - earlier >= TURNS_BETWEEN or large or tight or faster, (earlier, later, between)


TURNS_MEASURED = 8
"""How many of the newest turns' growth the engine remembers."""


def _mean(sent: Sequence[Sent]) -> float:
    return fmean([request.added for request in sent])


def steadily(calls: int, words: int, turns: int = 30) -> Iterator[tuple[Any, Sequence[Any]]]:
    for number in range(turns):
        answer, results = turn(number, calls, words)
        yield answer, [results]


REPORTED = pytest.mark.parametrize(
    "factor", [None, AS_COUNTED, ABOVE_THE_COUNT], ids=["nothing reported", "as counted", "above the count"]
)


@REPORTED
@pytest.mark.parametrize(
    ("ceiling", "calls", "words"),
    [
        pytest.param(8_000, 1, 120, id="8,000 and one call"),
        pytest.param(8_000, 4, 12, id="8,000 and parallel calls"),
        pytest.param(60_000, 1, 900, id="60,000 and one call"),
        pytest.param(60_000, 8, 110, id="60,000 and parallel calls"),
    ],
)
def test_a_ceiling_holds_and_leaves_room_for_several_turns(
    ceiling: int, calls: int, words: int, factor: float | None
) -> None:
    sent = play(steadily(calls, words), ceiling=ceiling, factor=factor)
    check(sent, ceiling)
    assert 1 <= sum(request.compacted or request.shortened for request in sent) <= len(sent) / TURNS_BETWEEN


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 150)), min_size=12, max_size=30),
    st.sampled_from([None, AS_COUNTED, ABOVE_THE_COUNT]),
    st.sampled_from(["rent-or-buy", "runway", "threshold", "never"]),
)
def test_whatever_the_turns_a_ceiling_holds(
    shapes: list[tuple[int, int]], factor: float | None, policy: str
) -> None:
    def turns() -> Iterator[tuple[Any, Sequence[Any]]]:
        for number, (calls, words) in enumerate(shapes):
            answer, results = turn(number, calls, words // calls + 1)
            yield answer, [results]

    check(play(turns(), ceiling=8_000, factor=factor, policy=policy), 8_000)


def test_what_cannot_be_brought_below_a_ceiling_is_left_alone_for_some_turns_and_the_log_says_so() -> None:
    def turns() -> Iterator[tuple[Any, Sequence[Any]]]:
        for number in range(24):
            answer, results = turn(number, 2, 20)
            yield answer, [results, {"role": "user", "content": f"And {number}? " + "mind the words " * 900}]

    sent = play(turns(), ceiling=2_000, factor=AS_COUNTED)
    above = [request for request in sent if request.tokens > 2_000]
    assert above
    assert all("ceiling-out-of-reach" in request.said or request.compacted for request in above)
    assert any("ceiling-out-of-reach" in request.said for request in above)
    assert sum(request.compacted for request in sent) <= len(sent) / TURNS_BETWEEN + 1


@pytest.mark.parametrize("factor", [1.3, 2.1], ids=["a third above", "twice the count"])
@pytest.mark.parametrize("characters", [140_000, 160_000])
def test_a_large_first_result_does_not_fill_the_window_for_ever(characters: int, factor: float) -> None:
    """Head protection kept it whole: a compaction at nearly every turn, and requests beyond the wall."""

    def turns() -> Iterator[tuple[Any, Sequence[Any]]]:
        answer, results = turn(0, 1, 1)
        prose = "The quick brown fox jumps over the lazy dog and runs on. "
        results["content"][0]["content"] = (prose * (characters // len(prose) + 1))[:characters]
        yield answer, [results]
        for number in range(1, 30):
            said = {"role": "user", "content": f"And then {number}? " + "please go on with it " * 40}
            text = "what was found in this place is told at length here " * 100
            yield {"role": "assistant", "content": [{"type": "text", "text": text}]}, [said]

    sent = play(turns(), window=64_000, factor=factor)
    check(sent[2:], 48_000 - 1)  # What nothing was reported for yet may be twice as large as it looks.
    assert sum(request.compacted for request in sent) <= 6


def _recorded(messages: Sequence[Any]) -> Iterator[tuple[Any, Sequence[Any]]]:
    waiting: list[Any] | None = None
    answer: Any = None
    for exchange in exchanges(messages):
        if waiting is not None:
            yield answer, list(exchange.new)
        answer, waiting = exchange.answer, list(exchange.new)
        if answer is None:
            return


@pytest.mark.full
@REPORTED
@pytest.mark.parametrize("ceiling", [8_000, 60_000])
@pytest.mark.parametrize("kind", ["coding", "research"])
def test_generated_sessions_stay_below_a_ceiling(kind: Any, ceiling: int, factor: float | None) -> None:
    session = generate_session(kind, seed=3, turns=120)
    messages = [json.loads(raw) for raw in session.as_anthropic().messages]
    check(play(_recorded(messages), ceiling=ceiling, factor=factor), ceiling)


@pytest.mark.full
@pytest.mark.skipif(not RECORDED, reason="no recorded sessions beside the project")
@pytest.mark.parametrize("ceiling", [8_000, 60_000])
@pytest.mark.parametrize("path", RECORDED[::7], ids=lambda path: path.name[:8])
def test_recorded_sessions_stay_below_a_ceiling(path: Path, ceiling: int) -> None:
    sent = play(_recorded(recorded(path)), ceiling=ceiling, factor=AS_COUNTED, is_chat=True)
    check(sent, ceiling, only_forced=True)
