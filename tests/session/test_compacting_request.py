"""The request that a provider is to compact: the beginning of the conversation as it is sent."""

import json

from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.core.api_calls import Response
from lowwater.core.entries import Appended, PreambleChanged
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message, Text
from lowwater.core.policies.registry import policy_named
from lowwater.core.turns.cache import begin_call, finish_call
from lowwater.core.turns.state import Route, Setup, State
from lowwater.session.factories import calibration_for
from lowwater.session.request import build_compaction_request
from lowwater.settings import ModelSettings, Settings
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.views import Script, size

MODEL = "claude-opus-5-5"
REGISTRY = load_registry()
TOOLS = b'[{"name":"bash","input_schema":{"type":"object"}}]'


def setup_with(**model: str) -> Setup:
    return Setup(
        chain=REGISTRY.chain(MODEL, ()),
        routes=(Route(model=MODEL),),
        settings=Settings(model=ModelSettings(**model)),  # type: ignore[arg-type]
        policy=policy_named("never"),
        tokenizer=WordTokenizer(),
        size=size,
        size_preamble=lambda system, tools: len(system) + len(tools),
    )


def state_of() -> State:
    script = Script("anthropic").user("Look into everything.")
    for step in range(10):
        script.calls("bash", {"command": str(step)}, f"output {step} " * 100)
    messages = tuple(script.messages())
    ledger = Ledger().append(PreambleChanged(at=0.0, system=b'"Be brief."', tools=TOOLS, tokens=20))
    ledger = ledger.append(Appended(at=0.0, messages=messages, tokens=tuple(map(size, messages))))
    return State(
        ledger=ledger,
        route=Route(model=MODEL),
        model=REGISTRY.find(MODEL),
        calibration=calibration_for(MODEL),
        format="anthropic",
        binds_thinking=True,
        parameters=b'{"type":"adaptive"}\0{"type":"auto"}',
    )


def sent(state: State, setup: Setup) -> State:
    said = Response(message=Message(role="assistant", parts=(Text(text="ok"),)))
    return finish_call(begin_call(state, setup, 100.0), said)


def test_over_a_warm_cache_it_is_marked_at_its_end_and_over_a_cold_one_not_at_all() -> None:
    setup, state = setup_with(), state_of()
    warm = build_compaction_request(sent(state, setup), state.ledger, 9, setup, 120.0)
    cold = build_compaction_request(sent(state, setup), state.ledger, 9, setup, 9_000.0)
    marked = json.loads(warm.body)["messages"]
    assert len(marked) == 9
    assert "cache_control" in json.dumps(marked[-1])
    assert b"cache_control" not in cold.body
    assert build_compaction_request(state, state.ledger, 9, setup, 0.0).body == cold.body, (
        "nothing was ever sent"
    )


def test_it_has_the_parameters_of_the_conversation() -> None:
    setup, state = setup_with(), state_of()
    body = json.loads(build_compaction_request(state, state.ledger, 9, setup, 0.0).body)
    assert (body["thinking"], body["tool_choice"]) == ({"type": "adaptive"}, {"type": "auto"})
    assert (body["model"], body["system"], body["tools"]) == (MODEL, "Be brief.", json.loads(TOOLS))
    dropping = json.loads(
        build_compaction_request(state, state.ledger, 9, setup_with(bound_thinking="drop"), 0.0).body
    )
    assert dropping["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    free = replace(state, binds_thinking=False)
    assert (
        "block_binding"
        not in json.loads(
            build_compaction_request(free, free.ledger, 9, setup_with(bound_thinking="drop"), 0.0).body
        )["thinking"]
    )
