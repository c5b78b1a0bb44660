"""Whatever mechanisms do to whatever view, and in whatever order: the invariants hold after each."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater.core.entries import Appended, Compacted
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms import call_arguments, condense, dedupe, elide, images, reasoning, truncate
from lowwater.core.mechanisms.edits import newest_user
from lowwater.core.mechanisms.mechanism import Zones, survey
from lowwater.core.mechanisms.registry import propose
from lowwater.core.mechanisms.spans import replace_span
from lowwater.core.messages import AnyPart, Format, Message, Text, Thinking, ToolCall, ToolResult, unpaired
from lowwater.core.proposals import Preset, Proposal
from lowwater.core.view import Item, Summary, view_items
from lowwater.settings import LeafSettings
from lowwater.testing.strategies import transcripts
from lowwater.testing.views import asked, lines, making, size

FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]
EDITS = ("dedupe", "elide", "call_arguments", "reasoning", "images", "shorten")
SPANS = ("summarize", "leaf", "condense", "summarize_all")
REACHING = ("shorten", "summarize_all")
LEAF = LeafSettings(leaf_chunk_tokens=150, leaf_target_tokens=10)
LIMIT = 300

presets = st.builds(
    Preset,
    elide_limit_chars=st.sampled_from((200, 600)),
    plain_placeholders=st.booleans(),
    by_value=st.booleans(),
    never_prune=st.sampled_from(((), ("read",), ("todo", "terminal"))),
)
zones = st.fixed_dictionaries(
    {
        "first": st.integers(min_value=0, max_value=4),
        "last": st.integers(min_value=1, max_value=4),
        "tail": st.sampled_from((0, 300)),
        "protect": st.sampled_from((0, 200, 2_000)),
    }
)


@st.composite
def views(draw: st.DrawFn, format: Format) -> Ledger:
    """Draw a ledger of a legal conversation in which some outputs and thoughts are long, some of them alike."""
    grown = [_grown(draw, message) for message in decode_messages(draw(transcripts(format)), format)]
    messages = tuple(decode_messages(encode_messages(grown, format), format))
    tokens = tuple(size(message) for message in messages)
    return Ledger().append(Appended(at=0.0, messages=messages, tokens=tokens))


def _grown(draw: st.DrawFn, message: Message) -> Message:
    parts = [_long(draw, part) for part in message.parts]
    return message.with_parts(parts) if parts != list(message.parts) else message


def _long(draw: st.DrawFn, part: AnyPart) -> AnyPart:
    if not isinstance(part, Thinking | ToolResult | ToolCall):
        return part
    count = draw(st.sampled_from((0, 5, 60, 60, 300)))
    if not count:
        return part
    text = lines(count, draw(st.sampled_from(("word", "日本語"))))
    if isinstance(part, ToolResult):
        return ToolResult(call_id=part.call_id, parts=(Text(text=text), *part.parts), is_error=part.is_error)
    if isinstance(part, ToolCall):
        return replace(part, arguments=json.dumps({"path": "a.py", "text": text, "n": [1, text[:400]]}))
    return Thinking(text=text, signature=part.signature, redacted=False)


def carry_out(items: Sequence[Item], proposal: Proposal, preset: Preset) -> list[Item]:
    how = making(preset=preset)
    match proposal.mechanism:
        case "dedupe":
            return dedupe.apply(items, proposal, how)
        case "elide":
            return elide.apply(items, proposal, how)
        case "call_arguments":
            return call_arguments.apply(items, proposal, how)
        case "reasoning":
            return reasoning.apply(items, proposal, how)
        case "images":
            return images.apply(items, proposal, how)
        case "shorten":
            return truncate.apply(items, proposal, how, limit=LIMIT)
        case _:
            assert proposal.span is not None
            depth = condense.depth_of(items, proposal.span) if proposal.mechanism == "condense" else 1
            return replace_span(items, proposal.span, "What was done.", how, depth=depth)


def offered(
    mechanism: str, items: Sequence[Item], preset: Preset, protected: dict[str, Any]
) -> Proposal | None:
    question = asked(list(items), preset, leaf=LEAF, **protected)
    if mechanism == "shorten":
        return truncate.propose(
            items, range(survey(question).zones.head, len(items)), question.context, limit=LIMIT
        )
    return next((offer for offer in propose(question).proposals if offer.mechanism == mechanism), None)


def tokens_of(items: Sequence[Item]) -> int:
    return sum(item.tokens for item in items)


def said(message: Message) -> list[AnyPart]:
    return [part for part in message.parts if not isinstance(part, ToolResult)]


@pytest.mark.parametrize("format", FORMATS)
def test_after_any_mechanisms_in_any_order_the_invariants_hold(format: Format) -> None:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(views(format), st.lists(st.sampled_from(EDITS + SPANS), min_size=1, max_size=6), presets, zones)
    def check(ledger: Ledger, mechanisms: list[str], preset: Preset, protected: dict[str, Any]) -> None:
        for mechanism in mechanisms:
            before = list(ledger.view.items)
            proposal = offered(mechanism, before, preset, protected)
            if proposal is None:
                continue
            after = carry_out(before, proposal, preset)
            assert after == carry_out(before, proposal, preset), "the same inputs give the same items"
            check_step(ledger, mechanism, before, after, survey(asked(before, preset, **protected)).zones)
            ledger = committed(ledger, mechanism, after)

    check()


def check_step(ledger: Ledger, mechanism: str, before: list[Item], after: list[Item], where: Zones) -> None:
    if mechanism in EDITS:
        changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]
        assert all(after[at].tokens < before[at].tokens for at in changed), "each changed item is smaller"
    if mechanism not in REACHING:
        assert all(new is old for new, old in zip(after[: where.head], before[: where.head], strict=True))
        tail = len(before) - where.tail
        assert all(
            new is old for new, old in zip(after[len(after) - tail :], before[where.tail :], strict=True)
        )
    broken = unpaired([item.message for item in after])
    assert not broken.results
    assert not broken.calls
    newest, was = newest_user(after), newest_user(before)
    if was is not None:
        assert newest is not None
        assert said(after[newest].message) == said(before[was].message), "the user's words stay word for word"


def committed(ledger: Ledger, mechanism: str, after: list[Item]) -> Ledger:
    if tokens_of(after) >= ledger.view.tokens:
        return ledger
    grown = ledger.append(Compacted(at=0.0, mechanisms=(mechanism,), items=view_items(after)))
    assert list(grown.view.items) == after, "what is stored shows the same view"
    assert grown.view.shown_numbers() == set(range(1, len(ledger.messages) + 1)), "nothing is lost"
    return grown


def pruned(items: list[Item], preset: Preset, protected: dict[str, Any]) -> list[Item]:
    """Carry out all edits that are offered, in order, as one compaction does."""
    offers = [offered(mechanism, items, preset, protected) for mechanism in EDITS]
    for proposal in offers:
        if proposal is not None:
            items = carry_out(items, proposal, preset)
    return items


@pytest.mark.parametrize("format", FORMATS)
def test_pruning_twice_is_pruning_once(format: Format) -> None:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(views(format), presets, zones)
    def check(ledger: Ledger, preset: Preset, protected: dict[str, Any]) -> None:
        once = pruned(list(ledger.view.items), preset, protected)
        assert pruned(once, preset, protected) == once

    check()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mechanism", ["summarize", "summarize_all"])
def test_summarising_twice_is_summarising_once(format: Format, mechanism: str) -> None:
    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(views(format), zones)
    def check(ledger: Ledger, protected: dict[str, Any]) -> None:
        before = list(ledger.view.items)
        proposal = offered(mechanism, before, Preset(), protected)
        if proposal is not None:
            once = carry_out(before, proposal, Preset())
            assert offered(mechanism, once, Preset(), protected) is None

    check()


def test_a_summary_is_no_target_of_an_edit() -> None:
    messages = decode_messages([b'{"role":"user","content":"hi"}'], "openai_chat")
    summary = Summary(message=messages[0], tokens=500, sources=(), depth=1)
    question = asked([summary] * 5, first=0, last=1)
    assert all(offer.span is not None for offer in propose(question).proposals)
