"""When an answer brings the provider's own compaction block, the view follows it (`native`)."""

import pytest

from lowwater.adapters.models import load_registry
from lowwater.core.entries import Appended
from lowwater.core.formats.codec import decode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.messages import Message
from lowwater.core.policies.registry import policy_named
from lowwater.core.turns.arrival import absorb_native_block
from lowwater.core.turns.state import Route, Setup, State
from lowwater.core.turns.thinking import strip_unbound
from lowwater.session.factories import calibration_for
from lowwater.session.request import PreparedRequest
from lowwater.settings import Settings
from lowwater.testing.fakes import WordTokenizer
from lowwater.testing.legality import refusal_of
from lowwater.testing.views import Script, size

BLOCK = b'{"type":"compaction","content":"What was done so far.",  "encrypted_content":"b3BhcXVl"}'
SIGNED = b'{"type":"compaction","content":"What was done so far.","signature":"c2lnbmVk"}'
REGISTRY = load_registry()


def setup_for(model: str) -> Setup:
    return Setup(
        chain=REGISTRY.chain(model, ()),
        routes=(Route(model=model),),
        settings=Settings(),
        policy=policy_named("never"),
        tokenizer=WordTokenizer(),
        size=size,
        size_preamble=lambda system, tools: len(system) + len(tools),
    )


def state_of(model: str, block: bytes, *, behind: list[Message]) -> State:
    """A tool loop that the provider compacted, with thinking before the block, beside it and behind it."""
    script = Script("anthropic").user("Look into everything.")
    for step in range(10):
        script.calls("bash", {"command": str(step)}, f"output {step} " * 50)
    thought = b'{"type":"thinking","thinking":"Hm.","signature":"s"}'
    said = [thought, block, b'{"type":"text","text":"On we go."}'] if block == BLOCK else [block]
    raw = b'{"role":"assistant","content":[' + b",".join(said) + b"]}"
    messages = [*script.messages(), decode_messages([raw], "anthropic")[0], *behind]
    ledger = Ledger().append(
        Appended(at=0.0, messages=tuple(messages), tokens=tuple(size(message) for message in messages))
    )
    found = REGISTRY.find(model)
    return State(
        ledger=ledger,
        route=Route(model=model),
        model=found,
        calibration=calibration_for(model),
        format="anthropic",
        binds_thinking=found.binds_thinking,
    )


def next_turn() -> list[Message]:
    return list(
        Script("anthropic")
        .calls("bash", {"command": "ls"}, "ok", thinking="Let me see.")
        .says("Done.")
        .user("And now?")
        .messages()
    )


def followed(model: str, block: bytes = BLOCK) -> State:
    setup, state = setup_for(model), state_of(model, block, behind=next_turn())
    return strip_unbound(absorb_native_block(state, setup, 1.0), setup, 1.0)


def sent(state: State) -> PreparedRequest:
    tools = b'[{"name":"bash","input_schema":{"type":"object"}}]'
    return PreparedRequest(
        messages=tuple(state.ledger.view.messages), detected_format="anthropic", tools=tools
    )


def test_what_the_block_stands_for_leaves_the_view_and_stays_in_the_ledger() -> None:
    before = state_of("claude-haiku-4-5", BLOCK, behind=next_turn())
    after = followed("claude-haiku-4-5")
    assert after.counted < before.counted / 2
    assert after.ledger.history() == before.ledger.history()
    assert after.ledger.view.shown_numbers() == before.ledger.view.shown_numbers()
    assert len(after.ledger.view.items) == 6


def test_the_request_that_follows_is_legal_and_carries_the_block_as_it_came() -> None:
    body = sent(followed("claude-haiku-4-5")).as_anthropic()
    assert refusal_of({"model": "claude-haiku-4-5", "max_tokens": 9, **body}, "anthropic") is None
    blocks = [block for block in body["messages"][1]["content"] if block["type"] == "compaction"]
    assert blocks == [
        {"type": "compaction", "content": "What was done so far.", "encrypted_content": "b3BhcXVl"}
    ]


@pytest.mark.parametrize(
    ("model", "thoughts"),
    [("claude-opus-5-5", 0), ("claude-haiku-4-5", 2)],
    ids=["a model that binds thinking", "one that does not"],
)
def test_thinking_beside_the_block_and_behind_it_stays_only_where_nothing_binds_it(
    model: str, thoughts: int
) -> None:
    view = followed(model).ledger.view
    assert sum(len(message.thinking) for message in view.messages) == thoughts
    assert any(part.kind == "opaque" for message in view.messages for part in message.parts)


def test_before_a_signed_block_that_came_alone_nothing_is_sent() -> None:
    state = followed("claude-haiku-4-5", SIGNED)
    messages = sent(state).as_anthropic()["messages"]
    assert messages[0] == {
        "role": "assistant",
        "content": [{"type": "compaction", "content": "What was done so far.", "signature": "c2lnbmVk"}],
    }
    assert len(messages) == len(state.ledger.view.items) - 1


def test_without_a_block_the_session_stays_as_it_is() -> None:
    state = state_of("claude-opus-5-5", b'{"type":"compaction","content":null}', behind=next_turn())
    assert absorb_native_block(state, setup_for("claude-opus-5-5"), 1.0) is state


def test_following_twice_is_following_once() -> None:
    after = followed("claude-opus-5-5")
    assert absorb_native_block(after, setup_for("claude-opus-5-5"), 2.0) is after
