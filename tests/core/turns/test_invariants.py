"""Invariants 1 to 8 (lowwater.testing.invariants) over generated conversations, in both formats, under every policy."""

import gzip
import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lowwater.core.messages import Format
from lowwater.core.policies.registry import POLICIES
from lowwater.session.internals import internals
from lowwater.testing.strategies import transcripts
from tests.generated import Kind, generate_session

CANONICAL = Path(__file__).parents[4] / "shared" / "transcripts" / "canonical"
RECORDED = sorted(CANONICAL.glob("*/*.jsonl.gz"))
SHARES = 4
"""Recorded sessions are checked in this many tests for each policy."""

FORMATS: tuple[Format, ...] = ("anthropic", "openai_chat")
KINDS: tuple[Kind, ...] = ("coding", "research", "support")
NAMES = ("read_file", "terminal", "Bash", "mcp__docs__search", "a", "get-weather_2")
CONTEXTS: dict[Kind, list[tuple[int, int]]] = {
    "coding": [(3, 12_000), (4, 32_000), (5, 64_000), (6, 128_000)],
    "research": [(3, 12_000), (4, 32_000), (5, 64_000), (6, 128_000)],
    "support": [(3, 12_000), (4, 32_000), (5, 64_000)],
}
"""Seeds and windows of long sessions; turns of support are so short that twice 64,000 tokens are 1,500 messages."""
TOOLS: dict[Format, list[Any]] = {
    "anthropic": [{"name": name, "input_schema": {"type": "object"}} for name in NAMES],
    "openai_chat": [{"type": "function", "function": {"name": name}} for name in NAMES],
}
EVERY_POLICY = pytest.mark.parametrize("policy", [policy.name for policy in POLICIES])
SAMPLE = settings(
    max_examples=3,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
THOUSAND = settings(SAMPLE, max_examples=65)
"""For each policy and format."""


def filler(lines: int) -> str:
    """Text as tools put out: paths, numbers, an error now and then."""
    said = [
        f"src/app/part_{line % 7}.py:{line * 37 % 911}: value_{line} = {line * line % 1009}"
        if line % 9
        else f"ValueError: no entry {line} in table_{line % 5}"
        for line in range(1, lines + 1)
    ]
    return "\n".join(said)


def renamed(message: Any, number: int) -> Any:
    """The same message with other call ids and without marks, so that several transcripts make one conversation."""
    text = json.dumps(message).replace('"cache_control"', '"x_mark"')
    for call in ("call_0", "call_1", "call_2"):
        text = text.replace(f'"{call}-', f'"{call}_{number}-')
    return json.loads(text, parse_constant=lambda _: 0)


def longer(draw: st.DrawFn, message: Any) -> Any:
    """The message with more text where its format has text."""
    lines = draw(st.sampled_from((0, 0, 0, 5, 40, 150)))
    if not lines:
        return message
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": f"{content}\n{filler(lines)}"}
    if not isinstance(content, list) or not content:
        return message
    blocks = [dict(block) for block in content]
    for block in blocks:
        if block.get("type") == "tool_result" and isinstance(block.get("content", ""), str):
            block["content"] = f"{block.get('content', '')}\n{filler(lines)}"
        elif block.get("type") == "text":
            block["text"] = f"{block['text']}\n{filler(lines)}"
    return {**message, "content": blocks}


@st.composite
def long_transcripts(draw: st.DrawFn, format: Format) -> list[Any]:
    """Draw a legal conversation of several transcripts, long enough to be compacted in a small window."""
    messages: list[Any] = []
    for number in range(draw(st.integers(2, 6))):
        for raw in draw(transcripts(format)):
            message = renamed(json.loads(raw), number)
            if message["role"] not in {"system", "developer"} or not messages:
                messages.append(longer(draw, message))
    return messages


def check_drawn(play: Any, conversation: Any, data: st.DataObject, policy: str, format: Format) -> None:
    messages = data.draw(long_transcripts(format))
    options = {
        "context": data.draw(st.sampled_from((3_000, 6_000, 12_000))),
        "first": data.draw(st.sampled_from((1, 2, 3))),
        "last": data.draw(st.sampled_from((1, 2, 5, 20))),
        "model": data.draw(st.sampled_from(("model-nobody-knows", "claude-opus-5-5"))),
    }
    system = data.draw(st.sampled_from((None, "Be brief."))) if format == "anthropic" else None
    talk = conversation(messages, format, system, TOOLS[format])
    played = play(policy, **options).play(talk)
    again = play(policy, **options).play(talk)
    assert [request.messages for request in again.requests] == [r.messages for r in played.requests]
    assert played.session.history() == messages


def generated(kind: Kind, format: Format, *, seed: int, tokens: int) -> tuple[Any, ...]:
    """A generated session as the arguments of a conversation."""
    session = generate_session(kind, seed=seed, target_tokens=tokens)
    tools = json.loads(session.tools_json(format))
    if format == "anthropic":
        form = session.as_anthropic()
        return [json.loads(raw) for raw in form.messages], format, json.loads(form.system), tools
    return [json.loads(raw) for raw in session.as_openai_chat()], format, None, tools


def recorded(path: Path) -> list[Any]:
    """A recorded session as a client would have sent it: without what the recording says beside the messages."""
    lines = gzip.decompress(path.read_bytes()).splitlines()[1:]
    sent = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content")
    return [{key: value for key, value in json.loads(line).items() if key in sent} for line in lines]


@EVERY_POLICY
@pytest.mark.parametrize("format", FORMATS)
@SAMPLE
@given(data=st.data())
def test_any_legal_conversation_keeps_the_invariants(
    play: Any, conversation: Any, policy: str, format: Format, data: st.DataObject
) -> None:
    check_drawn(play, conversation, data, policy, format)


@pytest.mark.parametrize(
    ("policy", "format"), list(zip([policy.name for policy in POLICIES], cycle(FORMATS), strict=False))
)
def test_a_long_session_keeps_the_invariants_and_is_compacted(
    play: Any, conversation: Any, policy: str, format: Format
) -> None:
    talk = conversation(*generated("coding", format, seed=1, tokens=60_000))
    played = play(policy, context=40_000).play(talk, check_all=False)
    assert played.compactions
    assert played.session.history() == talk.messages


@EVERY_POLICY
def test_compacting_twice_in_a_row_is_compacting_once(play: Any, conversation: Any, policy: str) -> None:
    talk = conversation(*generated("coding", "anthropic", seed=2, tokens=30_000))
    player = play(policy, context=200_000)
    session = player.play(talk, check_all=False).session
    assert session.compress() is not None
    view, entries = session.view(), len(internals(session).ledger.entries)
    assert session.compress() is None
    assert session.prepare().as_anthropic() == session.prepare().as_anthropic()
    assert session.view() == view
    assert len(internals(session).ledger.entries) == entries


@pytest.mark.full
@EVERY_POLICY
@pytest.mark.parametrize("format", FORMATS)
@THOUSAND
@given(data=st.data())
def test_a_thousand_legal_conversations_keep_the_invariants(
    play: Any, conversation: Any, policy: str, format: Format, data: st.DataObject
) -> None:
    check_drawn(play, conversation, data, policy, format)


@pytest.mark.full
@EVERY_POLICY
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", FORMATS)
def test_long_sessions_of_every_kind_keep_the_invariants(
    play: Any, conversation: Any, policy: str, kind: Kind, format: Format
) -> None:
    for seed, context in CONTEXTS[kind]:
        talk = conversation(*generated(kind, format, seed=seed, tokens=2 * context))
        for model in ("model-nobody-knows", "claude-opus-5-5"):
            assert play(policy, context=context, model=model).play(talk, check_all=False).compactions


@pytest.mark.full
@pytest.mark.skipif(not RECORDED, reason="no recorded sessions beside the project")
@EVERY_POLICY
@pytest.mark.parametrize("share", range(SHARES))
def test_every_recorded_session_keeps_the_invariants(
    play: Any, conversation: Any, policy: str, share: int
) -> None:
    """Each under every second policy, and next to it in the folder under the others."""
    every_second = [each.name for each in POLICIES].index(policy) % 2
    compactions = 0
    for path in RECORDED[share::SHARES][every_second::2]:
        talk = conversation(recorded(path), "openai_chat", None, None)
        compactions += play(policy, context=48_000).play(talk, check_all=False).compactions
    assert compactions
