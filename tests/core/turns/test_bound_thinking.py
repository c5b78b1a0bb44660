"""What becomes of bound thinking, decided from values: kept behind a block, dropped by the provider, or stripped."""

from typing import Any

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.entries import Appended, Compacted
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import native
from lowwater.core.mechanisms.reasoning import strip_behind
from lowwater.core.messages import Span
from lowwater.core.policies.registry import policy_named
from lowwater.core.strict_json import write_json
from lowwater.core.turns.state import Ladder, Route, Setup, State, SummarizerBackoff
from lowwater.core.turns.thinking import (
    drops_thinking,
    first_unbound,
    is_thinking_refused,
    restore_opening_thinking,
    strip_unbound,
    tool_loop_opening,
    unbind,
    unbound_behind,
)
from lowwater.core.view import view_items
from lowwater.session.factories import calibration_for
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.views import Script, making, size

REGISTRY = load_registry()
BINDS, FREE = REGISTRY.find("claude-opus-5-5"), REGISTRY.find("claude-opus-4-8")
BLOCK = b'{"type":"compaction","content":"So far.","signature":"c2ln"}'
ADAPTIVE: dict[str, Any] = {"type": "adaptive"}


def state_of(thinking: Any = None) -> State:
    script = Script("anthropic").user("Look.")
    for step in range(6):
        script.calls("bash", {"command": str(step)}, f"output {step} " * 20, thinking="Hm.")
    messages = tuple(script.user("And now?").messages())
    ledger = Ledger().append(Appended(at=0.0, messages=messages, tokens=tuple(map(size, messages))))
    return State(
        ledger=ledger,
        route=Route(model=BINDS.name),
        model=BINDS,
        calibration=calibration_for(BINDS.name),
        format="anthropic",
        binds_thinking=True,
        parameters=(b"" if thinking is None else write_json(thinking)) + b"\0",
    )


def setup_with(bound: Any = "strip") -> Setup:
    return Setup(
        chain=REGISTRY.chain(BINDS.name, ()),
        routes=(Route(model=BINDS.name),),
        settings=Settings(model=ModelSettings(bound_thinking=bound)),
        policy=policy_named("never"),
        tokenizer=WordTokenizer(),
        size=size,
        size_preamble=lambda system, tools: len(system) + len(tools),
    )


@pytest.mark.parametrize(
    ("thinking", "bound", "drops"),
    [
        (None, "drop", False),
        (ADAPTIVE, "strip", False),
        (ADAPTIVE, "drop", True),
        ({"type": "enabled", "budget_tokens": 2_000}, "drop", False),
        ({**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}, "strip", True),
        ({**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "error"}}, "drop", False),
        ({"type": "enabled", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}, "drop", False),
    ],
    ids=[
        "no thinking",
        "adaptive",
        "adaptive and set",
        "a budget",
        "asked for",
        "an error asked for",
        "a budget cannot",
    ],
)
def test_the_provider_drops_it_only_where_it_can_and_is_asked(thinking: Any, bound: str, drops: bool) -> None:
    state, setup = unbind(state_of(thinking), after=0), setup_with(bound)
    assert drops_thinking(state, setup) is drops
    after = strip_unbound(state, setup, 1.0)
    left = sum(len(message.thinking) for message in after.ledger.view.messages)
    assert left == (6 if drops else 0)
    assert after.thinking_unbound_above == (0 if drops else None), (
        "what is left in is remembered, for a request that cannot ask"
    )


def test_behind_a_block_of_a_model_that_binds_what_follows_directly_is_not_loose() -> None:
    before = state_of().ledger.view.items
    after = native.put_block(before, Span(start=0, stop=5), BLOCK, making())
    assert first_unbound(before, after, 0, BINDS) == len(after)
    assert first_unbound(before, after, 0, FREE) == 0, "a block by any other model vouches for nothing"
    assert first_unbound(before, [after[0], before[0], *after[1:]], 0, BINDS) == 1
    later = [*after[:3], before[0], *after[3:]]
    assert first_unbound(after, later, 3, BINDS) == 3, "a block that stood there before changes nothing"


def test_the_lowest_number_is_remembered() -> None:
    items = state_of().ledger.view.items
    assert unbound_behind(items, 3, None) == 3
    assert unbound_behind(items, 3, 1) == 1
    assert unbound_behind(items, len(items), None) is None
    assert unbound_behind(items, len(items), 4) == 4


BUDGET = {"type": "enabled", "budget_tokens": 2_000}


@pytest.mark.parametrize(
    ("thinking", "binds", "restored"),
    [(BUDGET, False, True), (BUDGET, True, False), (ADAPTIVE, False, False), (None, False, False)],
    ids=["a budget", "bound", "adaptive", "no thinking"],
)
def test_the_answer_that_opens_the_running_loop_gets_its_thinking_back_for_a_budget(
    thinking: Any, binds: bool, restored: bool
) -> None:
    state = replace(state_of(thinking), binds_thinking=binds, model=BINDS if binds else FREE)
    items = list(state.ledger.view.items)
    while not items[-1].message.results:
        items.pop()
    bare = strip_behind(items, 0, making())
    left = restore_opening_thinking([bare[0], *bare[3:]], state, making())
    opening = tool_loop_opening(left)
    assert opening == 1
    assert [bool(item.message.thinking) for item in left[1::2]] == [restored] + [False] * (
        len(left[1::2]) - 1
    )
    if restored:
        assert left[1].message == items[3].message, "as it was, signature and all"
        assert left[1].tokens == items[3].tokens
    ledger = state.ledger.append(Compacted(at=1.0, mechanisms=("leaf",), items=view_items(left)))
    assert is_thinking_refused(replace(state, ledger=ledger)) is (thinking == BUDGET and not restored)


def test_after_a_block_of_no_use_none_is_asked_for_for_an_hour() -> None:
    standing = SummarizerBackoff()
    assert standing.asks_for_blocks(0.0)
    failed = replace(standing, no_block_since=100.0)
    assert not failed.asks_for_blocks(101.0)
    assert failed.asks_for_blocks(3_700.0)
    assert failed.asks_for_blocks(50.0), "a clock that went back keeps nobody waiting"
    for _ in range(3):
        failed = failed.after(low=True, now=200.0)
    assert (failed.first, failed.no_block_since) == (1, 100.0)
    assert failed.at(9_000.0) == SummarizerBackoff(no_block_since=100.0)


def test_a_rung_can_be_left_out() -> None:
    assert Ladder(rungs=3).without(1).asked == (0, 2)
    assert Ladder(rungs=3, order=(2, 0, 1)).without(2).asked == (0, 1)
    assert Ladder(rungs=1).without(0).asked == ()
