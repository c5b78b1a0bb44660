"""A mechanism of somebody else's package: it is asked, priced and carried out like ours, and held to the same rules."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lowwater import Lowwater
from lowwater.core.decisions import Compact
from lowwater.core.entries import Appended, Compacted, Edit
from lowwater.core.formats.codec import decode_messages, encode_messages
from lowwater.core.ledger import Ledger
from lowwater.core.mechanisms.edits import edit, offer_edits
from lowwater.core.mechanisms.mechanism import EditContext, Mechanism, ProposalRequest, Zones, survey
from lowwater.core.mechanisms.registry import apply_checked, places_in, propose, propose_edits
from lowwater.core.messages import AnyPart, Format, Message, Text, ToolCall, ToolResult, unpaired
from lowwater.core.proposals import Proposal, Target
from lowwater.core.view import Edited, Item, shown_parts, view_items
from lowwater.session.internals import internals
from lowwater.session.plugins import mechanisms_of
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.legality import refusal_of
from lowwater.testing.strategies import transcripts
from lowwater.testing.views import Script, asked, lines, making, size
from tests.session.installed_packages import PATH, add_example, add_package, look_again, put_on_path
from tests.session.test_plugins import writes

FORMATS: list[Format] = ["openai_chat", "anthropic", "openai_responses"]
protections = st.fixed_dictionaries(
    {"first": st.integers(0, 4), "last": st.integers(1, 4), "tail": st.sampled_from((0, 300))}
)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example package, installed."""
    add_example(tmp_path / "site")
    put_on_path(monkeypatch, tmp_path / "site", PATH)
    yield
    look_again()


@st.composite
def views(draw: st.DrawFn, format: Format) -> Ledger:
    """Draw a ledger of a legal conversation in which some calls write long texts."""
    grown = [_grown(draw, message) for message in decode_messages(draw(transcripts(format)), format)]
    messages = tuple(decode_messages(encode_messages(grown, format), format))
    return Ledger().append(Appended(at=0.0, messages=messages, tokens=tuple(map(size, messages))))


def _grown(draw: st.DrawFn, message: Message) -> Message:
    parts = [_long(draw, part) for part in message.parts]
    return message.with_parts(parts) if parts != list(message.parts) else message


def _long(draw: st.DrawFn, part: AnyPart) -> AnyPart:
    count = draw(st.sampled_from((0, 30, 200))) if isinstance(part, ToolCall) else 0
    if not isinstance(part, ToolCall) or not count:
        return part
    written = {"path": "a.md", "content": lines(count, draw(st.sampled_from(("word", "日本語"))))}
    return replace(part, arguments=json.dumps(written, ensure_ascii=draw(st.booleans())))


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("format", FORMATS)
def test_whatever_the_view_it_gets_smaller_stays_whole_and_can_be_had_back(format: Format) -> None:
    (mechanism,) = mechanisms_of(("arguments",))

    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(views(format), protections)
    def check(ledger: Ledger, protected: dict[str, Any]) -> None:
        before = list(ledger.view.items)
        question = replace(asked(before, **protected), mechanisms=(mechanism,))
        proposal = next((each for each in propose(question).proposals if each.mechanism == "arguments"), None)
        if proposal is None:
            return
        after = apply_checked(mechanism, before, proposal, question.context)
        _holds(before, after, proposal, survey(question).zones)
        assert list(mechanism.apply(before, proposal, question.context)) == after, (
            "nothing had to be held back"
        )
        grown = ledger.append(Compacted(at=0.0, mechanisms=("arguments",), items=view_items(after)))
        assert list(grown.view.items) == after, "what is stored shows the same view"
        assert [said.message for said in grown.messages] == [item.message for item in before]
        messages = [item.message for item in after]
        assert decode_messages(encode_messages(messages, format), format) == messages
        again = replace(question, items=after)
        assert all(each.mechanism != "arguments" for each in propose(again).proposals), "once is enough"

    check()


def _holds(before: Sequence[Item], after: Sequence[Item], proposal: Proposal, zones: Zones) -> None:
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]
    assert set(changed) <= {target.item for target in proposal.targets} <= set(zones.middle)
    assert all(after[at].tokens < before[at].tokens for at in changed)
    assert sum(item.tokens for item in after) < sum(item.tokens for item in before)
    broken = unpaired([item.message for item in after])
    was = unpaired([item.message for item in before])
    assert (broken.results, broken.calls) == (was.results, was.calls)
    for at in changed:
        item = after[at]
        assert isinstance(item, Edited)
        assert f"lw:{item.number}" in "".join(call.arguments for call in item.message.calls)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("policy", ["runway", "prune-naive", "hygiene", "hermes-classic"])
def test_policies_that_prune_first_use_it(policy: str) -> None:
    session = Lowwater(model="gpt-4o", policy=policy, mechanisms=["arguments"], store="memory:").session()
    session.prepare(writes(75))
    event = internals(session).last_compaction
    assert event is not None
    assert event.mechanisms[0] == "arguments"
    assert ("summarize" in event.mechanisms) is (policy == "hermes-classic")
    assert refusal_of({"model": "gpt-4o", "messages": session.view()}, "openai_chat") is None
    assert "line 1-119 is about item 1119" not in json.dumps(session.view())
    assert "line 1-119 is about item 1119" in "".join(found.text for found in session.recall("lw:4"))


@pytest.mark.usefixtures("example")
def test_by_hand_it_is_used_as_well() -> None:
    session = Lowwater(model="gpt-4o", policy="runway", mechanisms=["arguments"], store="memory:").session()
    session.append(writes(40))
    event = session.compress()
    assert event is not None
    decision = internals(session).decision
    assert isinstance(decision, Compact)
    assert [step.mechanism for step in decision.proposals] == ["arguments", "summarize"]


VARIANTS = """
from msgspec.structs import replace
from lowwater_plugins_example.mechanism import MECHANISM

HARMLESS = replace(MECHANISM, loses=0.0)
"""


@pytest.mark.usefixtures("example")
def test_rent_or_buy_buys_it_by_its_price_with_what_it_may_lose(tmp_path: Path) -> None:
    points = {"lowwater.mechanisms": {"harmless": "variants_of_arguments:HARMLESS"}}
    add_package(tmp_path / "site", "variants", points, {"variants_of_arguments": VARIANTS})
    look_again()
    for name, loses in (("arguments", True), ("harmless", False)):
        clock = ScriptedClock(1_000.0)
        library = Lowwater(model="claude-opus-5-5", mechanisms=[name], store="memory:", clock=clock)
        session = library.session()
        session.prepare(writes(60))
        event = internals(session).last_compaction
        assert event is not None
        assert (event.mechanisms, event.because.code) == ((name,), "free-now")
        _, _, told = session.explain().partition("On sale: placeholders for long arguments, ")
        assert told
        own, *_ = told.split("On sale: ")
        assert ("expected rework" in own) is loses


def claim_results(items: Sequence[Item], zones: Zones, _making: EditContext) -> Proposal | None:
    """Offer every tool result of the view, protected or not."""
    targets = [
        Target(item=at, path=path, tokens=items[at].tokens)
        for at in range(len(items))
        for path, part in shown_parts(items[at])
        if isinstance(part, ToolResult)
    ]
    return offer_edits("somebody", items, targets, left=len(targets))


def shorten_results(items: Sequence[Item], proposal: Proposal, how: EditContext) -> list[Item]:
    """Put a short line into each."""
    kept = list(items)
    for target in proposal.targets:
        kept[target.item] = edit(
            kept[target.item], [Edit(path=(*target.path, 0), by=Text(text="gone"))], how.size
        )
    return kept


GREEDY = Mechanism(name="greedy", propose=claim_results, apply=shorten_results, loses=0.5)


def talk() -> list[Item]:
    told = Script().user("Look around.")
    for number in range(12):
        told.calls("read_file", {"path": f"{number}.py"}, lines(200, f"file{number}"), thinking="Hm. " * 30)
    return told.items()


def question_with(*mechanisms: Mechanism, items: list[Item] | None = None) -> ProposalRequest:
    return replace(asked(items or talk(), first=3, last=5), mechanisms=mechanisms)


def half_of_them(items: Sequence[Item], zones: Zones, how: EditContext) -> Proposal | None:
    """Offer every other tool result."""
    found = claim_results(items, zones, how)
    return found and offer_edits(found.mechanism, items, found.targets[::2], left=len(found.targets) // 2)


def test_what_it_offers_lies_in_the_middle_and_is_offered_by_no_other() -> None:
    half = replace(GREEDY, name="half", propose=half_of_them)
    question = question_with(half, GREEDY, replace(GREEDY, name="late"))
    middle = set(survey(question).zones.middle)
    edits = [each for each in propose(question).proposals if each.targets]
    assert [each.mechanism for each in edits] == ["half", "greedy"]
    assert {target.item for each in edits for target in each.targets} <= middle
    assert not places_in(edits[:1]) & places_in(edits[1:])
    with_ours = [each for each in propose(question_with(half)).proposals if each.targets]
    (alone,) = [each for each in propose(question_with()).proposals if each.targets]
    assert [each.mechanism for each in with_ours] == ["half", "elide"]
    assert not places_in(with_ours[:1]) & places_in(with_ours[1:])
    assert 0 < with_ours[1].removes < alone.removes


def test_a_proposal_that_loses_targets_removes_that_much_less() -> None:
    question = question_with(GREEDY)
    zones = survey(question).zones
    whole = claim_results(question.items, zones, question.context)
    kept = propose_edits(question, zones)[0]
    assert whole is not None
    assert 0 < kept.removes < whole.removes
    assert kept.first_changed >= zones.head


def _drops_an_item(items: Sequence[Item], _: Proposal, __: EditContext) -> list[Item]:
    return list(items[:-1])


def _edits_another(items: Sequence[Item], proposal: Proposal, how: EditContext) -> list[Item]:
    kept = list(items)
    kept[-1] = shorten_results(
        [kept[-1]], replace(proposal, targets=(Target(item=0, path=(0,), tokens=9),)), how
    )[0]
    return kept


def _loses_a_result(items: Sequence[Item], proposal: Proposal, how: EditContext) -> list[Item]:
    kept = list(items)
    for target in proposal.targets:
        by = [Edit(path=target.path, by=Text(text="no result"))]
        kept[target.item] = edit(kept[target.item], by, how.size)
    return kept


def _lies_about_sizes(items: Sequence[Item], proposal: Proposal, how: EditContext) -> list[Item]:
    edited = shorten_results(items, proposal, how)
    return [replace(item, tokens=0) if isinstance(item, Edited) else item for item in edited]


def _grows(items: Sequence[Item], proposal: Proposal, how: EditContext) -> list[Item]:
    kept = list(items)
    for target in proposal.targets:
        by = [Edit(path=(*target.path, 0), by=Text(text=lines(900)))]
        kept[target.item] = edit(kept[target.item], by, how.size)
    return kept


@pytest.mark.parametrize(
    "apply",
    [_drops_an_item, _edits_another, _loses_a_result, _lies_about_sizes, _grows],
    ids=lambda f: f.__name__,
)
def test_what_breaks_the_rules_is_not_done(apply: Any) -> None:
    question = question_with(GREEDY)
    proposal = propose_edits(question, survey(question).zones)[0]
    items = list(question.items)
    assert apply_checked(replace(GREEDY, apply=apply), items, proposal, making()) == items
    assert apply_checked(GREEDY, items, proposal, making()) != items
