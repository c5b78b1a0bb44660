"""What holds for any decision context under any policy."""

import re
from math import isfinite

from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from lowwater.core.decisions import CODES, Compact, Decision, DecisionContext, Keep, Past
from lowwater.core.policies.explanations import explain, reason_sentence
from lowwater.core.policies.registry import POLICIES
from lowwater.core.policies.safety_rules import after_compaction, decide, final_without_proposals
from lowwater.settings import CompressionSettings, LeafSettings, Settings
from lowwater.testing.decision_contexts import EDITS, REPLACING, decision_contexts, offer

policies = st.sampled_from([policy.name for policy in POLICIES])
settings = st.builds(
    Settings,
    compression=st.builds(CompressionSettings, max_view_tokens=st.none() | st.integers(1, 500_000)),
    leaf=st.builds(
        LeafSettings,
        leaf_chunk_tokens=st.integers(1, 50_000),
        leaf_target_tokens=st.integers(0, 50_000),
        leaf_budget_headroom_factor=st.floats(0, 1),
        leaf_skip_reduction_threshold=st.floats(0, 1),
        context_threshold=st.floats(0, 1),
    ),
)


def helps(now: DecisionContext) -> bool:
    return any(now.scaled(offer.removes) > 0 for offer in now.proposals)


@given(decision_contexts(), settings, policies)
def test_every_decision_is_explained_without_a_number_that_is_none(
    now: DecisionContext, chosen: Settings, policy: str
) -> None:
    decision = decide(now, chosen, policy=policy)
    assert decision.because.code in CODES
    assert all(isinstance(fact, str) or isfinite(fact) for fact in decision.because.facts.values())
    assert not reason_sentence(decision.because).startswith(decision.because.code)
    assert not re.search(r"\b(nan|inf)\b", explain(decision, scale=now.scale))


@given(decision_contexts(), settings, policies)
def test_a_decision_survives_the_store(now: DecisionContext, chosen: Settings, policy: str) -> None:
    decision = decide(now, chosen, policy=policy)
    assert json.decode(json.encode(decision), type=Decision) == decision


@given(decision_contexts(), settings, policies)
def test_decisions_are_deterministic(now: DecisionContext, chosen: Settings, policy: str) -> None:
    again = json.decode(json.encode(replace(now, scale=1.0, growth=0.0)), type=DecisionContext)
    assert decide(again, chosen, policy=policy) == decide(replace(now, scale=1.0), chosen, policy=policy)


@given(decision_contexts(), policies, st.booleans())
def test_disabled_never_compacts(now: DecisionContext, policy: str, forced: bool) -> None:
    off = Settings(compression=CompressionSettings(enabled=False))
    assert isinstance(decide(replace(now, forced=forced), off, policy=policy), Keep)
    assert isinstance(decide(replace(now, forced=forced, enabled=False), Settings(), policy=policy), Keep)


@given(decision_contexts(), settings, policies)
def test_forced_with_any_proposal_compacts(now: DecisionContext, chosen: Settings, policy: str) -> None:
    decision = decide(replace(now, forced=True), chosen, policy=policy)
    assert isinstance(decision, Compact) is bool(now.proposals)


@given(decision_contexts(), settings, policies)
def test_at_the_wall_whatever_helps_is_taken(now: DecisionContext, chosen: Settings, policy: str) -> None:
    now = replace(now, prompt=max(now.prompt, now.limits.wall))
    assert isinstance(decide(now, chosen, policy=policy), Compact) is helps(now)


@given(decision_contexts(), settings, policies)
def test_a_compaction_has_steps_that_are_offered_and_of_use(
    now: DecisionContext, chosen: Settings, policy: str
) -> None:
    decision = decide(now, chosen, policy=policy)
    if isinstance(decision, Compact):
        assert decision.proposals
        assert all(offer in now.proposals for offer in decision.proposals)
        assert all(now.scaled(offer.removes) > 0 for offer in decision.proposals)
        assert decision.enough < now.prompt


@given(decision_contexts(), settings, policies)
def test_the_tail_is_touched_only_at_the_wall_or_a_ceiling(
    now: DecisionContext, chosen: Settings, policy: str
) -> None:
    decision = decide(now, chosen, policy=policy)
    ceiling = chosen.compression.max_view_tokens or now.prompt
    if isinstance(decision, Compact) and now.prompt < now.limits.wall and now.prompt <= ceiling:
        assert all(offer.mechanism != "summarize_all" for offer in decision.proposals)


@given(decision_contexts(), settings, policies)
def test_a_compaction_in_vain_is_not_repeated_at_once(
    now: DecisionContext, chosen: Settings, policy: str
) -> None:
    """Below the wall the same situation, after a compaction that was given up, is left alone; above a ceiling after two."""
    now = replace(now, past=replace(now.past, turns_since=min(4, now.past.turns_since)))
    decision = decide(now, chosen, policy=policy)
    if isinstance(decision, Compact) and now.prompt < now.limits.wall:
        past = after_compaction(now, decision, prompt=None)
        if now.prompt > (chosen.compression.max_view_tokens or now.prompt):
            past = after_compaction(replace(now, past=past), decision, prompt=None)
        assert isinstance(decide(replace(now, past=past), chosen, policy=policy), Keep)


@given(decision_contexts(), settings, policies, st.booleans())
def test_what_is_settled_without_offers_stands_whatever_is_offered(
    now: DecisionContext, chosen: Settings, policy: str, forced: bool
) -> None:
    now = replace(now, forced=forced)
    alone = decide(replace(now, proposals=()), chosen, policy=policy)
    if final_without_proposals(alone, now):
        assert decide(now, chosen, policy=policy) == alone


@given(decision_contexts(), settings, policies)
def test_what_is_not_settled_without_offers_can_become_a_compaction(
    now: DecisionContext, chosen: Settings, policy: str
) -> None:
    """Else the mechanisms would be asked at every turn for nothing."""
    if not final_without_proposals(decide(replace(now, proposals=()), chosen, policy=policy), now):
        everything = tuple(offer(name, now.prompt) for name in (*EDITS, *REPLACING))
        ready = replace(now, proposals=everything, past=Past(), scale=1.0)
        if now.prompt >= now.limits.minimum_prune:
            assert isinstance(decide(ready, chosen, policy=policy), Compact)
