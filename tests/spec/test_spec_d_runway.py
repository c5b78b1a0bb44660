"""Specification D: prune first, with runway (`runway`), without it (`prune-naive`), and not at all (`threshold`)."""

from typing import Any

import pytest

from lowwater.core.decisions import Compact
from lowwater.core.mechanisms.mechanism import find_zones
from lowwater.core.policies.safety_rules import decide
from lowwater.core.view import Edited
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings, ToolResultSettings
from lowwater.testing.decision_contexts import example_context, offer
from lowwater.testing.fakes import ScriptedSummarizer

NONE = Settings()
PLAIN = ToolResultSettings(digest_ratio=0.0)
"""Digests are not what this is about, and take their time."""


def changed(session: Any) -> set[int]:
    return {at for at, item in enumerate(internals(session).ledger.view.items) if isinstance(item, Edited)}


# What is protected


@pytest.mark.parametrize(
    ("window", "steps", "tokens"),
    [
        (128_000, 50, 40_000),
        (127_999, 50, 20_000),
        (63_999, 33, 10_000),
    ],
)
def test_d_the_newest_tool_output_before_the_tail_is_protected_by_context(
    opened, loop, reported, window, steps, tokens
) -> None:
    compression = CompressionSettings(target_ratio=0.1)
    settings = Settings(compression=compression, tool_results=PLAIN)
    session = opened(loop(steps, lines=90), policy="prune-naive", window=window, settings=settings)
    limits = example_context(1, context=window, compression=compression).limits
    reported(session, limits.threshold)
    before = list(internals(session).ledger.view.items)
    session.prepare()
    zones = find_zones(before, first=3, last=20, tail_tokens=limits.tail)
    results = [at for at in zones.middle if before[at].message.results]
    kept = [at for at in results if at not in changed(session)]
    assert changed(session)
    assert max(changed(session)) < min(kept), "counted backwards from the start of the tail"
    spent = sum(before[at].tokens for at in kept)
    assert spent - before[kept[0]].tokens < tokens <= spent, "the one that crosses the limit is kept whole"


def test_d_the_tail_itself_is_excluded(opened, loop) -> None:
    session = opened(loop(58, lines=90), policy="prune-naive")
    before = list(internals(session).ledger.view.items)
    session.prepare()
    kept = sum(
        item.tokens for at, item in enumerate(before) if item.message.results and at not in changed(session)
    )
    assert kept > 40_000 + 10_000, "what is protected, and the tail on top of it"


def test_d_never_prune_outputs_do_not_count(opened, loop, reported) -> None:
    found = []
    for todos in (0, 10):
        script = loop(todos, lines=90, tool="todo", script=loop(32, lines=90), start=32)
        session = opened(loop(32, lines=90, script=script, start=42), policy="runway")
        reported(session, 70_000)
        session.prepare()
        found.append(len(changed(session)))
    assert found[0] == found[1] > 0


@pytest.fixture
def pruned(opened, loop, reported) -> Any:
    """Whether the oldest results of a session, which are of this tool, are elided by a prune."""

    def run(tool: str, **options: Any) -> bool:
        script = loop(12, lines=90, tool=tool)
        session = opened(loop(62, lines=90, script=script, start=12), policy="runway", **options)
        reported(session, 68_000)
        session.prepare()
        assert session.status().last_compaction.mode == "prune", session.explain()
        return bool(changed(session) & set(range(5, 26)))

    return run


@pytest.mark.parametrize("tool", ["memory", "TodoWrite", "mcp__fs__read_file"])
def test_d_tools_of_these_classes_are_never_pruned(pruned, tool) -> None:
    assert not pruned(tool)


def test_d_others_are(pruned) -> None:
    assert pruned("web_search")


def test_d_what_is_never_pruned_is_configurable(pruned) -> None:
    settings = Settings(tool_results=ToolResultSettings(never_prune=("web_search",)))
    assert not pruned("WebFetch", settings=settings), "by class"
    assert pruned("memory", settings=settings)


def test_d_read_file_can_be_taken_off_the_list(pruned) -> None:
    settings = Settings(
        tool_results=ToolResultSettings(never_prune=("clarify", "memory", "skill_view", "todo"))
    )
    assert pruned("read_file", settings=settings)


def test_d_a_file_may_go_outside_the_seed_presets(opened, loop, reported) -> None:
    script = loop(56, lines=90, tool="read_file")
    gone = {}
    for policy in ("hygiene", "prune-naive"):
        session = opened(script, policy=policy)
        reported(session, 111_000)
        session.prepare()
        gone[policy] = "elide" in [proposal.mechanism for proposal in session.status().decision.proposals]
    assert gone == {"hygiene": True, "prune-naive": False}


# What counts


@pytest.mark.parametrize(
    ("context", "minimum"),
    [(65_536, 5_000), (100_000, 5_000), (128_000, 6_400), (200_000, 10_000), (1_000_000, 50_000)],
)
def test_d_a_prune_counts_from_the_larger_of_5000_and_a_twentieth_of_the_context(context, minimum) -> None:
    at = example_context(1, context=context).limits.threshold

    def code(removes: int) -> str:
        now = example_context(at, offer("elide", removes), offer("summarize", at // 2), context=context)
        return decide(now, NONE, policy="runway").because.code

    assert code(minimum - 1) == "prune-too-small"
    assert code(minimum) != "prune-too-small"


def test_d_below_that_it_is_discarded_whole(opened, loop, reported, compacted) -> None:
    session = opened(loop(49, lines=90), policy="runway")
    reported(session, 64_000)
    session.prepare()
    assert session.status().decision.because.code == "prune-too-small"
    assert compacted(session).mechanisms == ("summarize",)


@pytest.mark.parametrize(
    ("context", "threshold", "minimum", "runway", "target"),
    [
        (128_000, 64_000, 6_400, 9_600, 54_400),
        (200_000, 100_000, 10_000, 15_000, 85_000),
        (1_000_000, 500_000, 50_000, 75_000, 425_000),
        (64_000, 45_600, 5_000, 6_840, 38_760),
        (24_000, 17_100, 5_000, 5_000, 12_100),
    ],
    ids=["128K", "200K", "1M", "64K", "the minimum is more than 15 %"],
)
def test_d_the_runway_is_the_larger_of_the_minimum_and_15_percent_and_the_target_lies_that_far_below(
    context, threshold, minimum, runway, target
) -> None:
    now = example_context(
        threshold, offer("elide", minimum), offer("summarize", threshold // 2), context=context
    )
    decision = decide(now, NONE, policy="runway")
    assert isinstance(decision, Compact)
    assert (decision.because.facts["trigger"], decision.because.facts["target"]) == (threshold, target)
    assert decision.enough == target == threshold - runway


# When a prune is accepted alone


@pytest.fixture
def ending(opened, loop, reported, faithful) -> Any:
    """A session at 128K whose prune alone leaves exactly so many tokens, and its summarizer."""

    def run(policy: str, tokens: int) -> tuple[Any, ScriptedSummarizer]:
        compression = CompressionSettings(protect_last_n=1, target_ratio=0.1)
        settings = Settings(compression=compression, tool_results=PLAIN)
        removed, summarizer = 0, ScriptedSummarizer(faithful)
        for prompt in (64_000, tokens):  # the first finds out what a prune removes
            session = opened(loop(55, lines=90), policy=policy, settings=settings, summarizer=summarizer)
            reported(session, prompt + removed)
            session.prepare()
            removed = removed or session.status().last_compaction.reclaimed
        return session, summarizer

    return run


@pytest.mark.parametrize(
    ("tokens", "mode"), [(48_000, "prune"), (54_400, "prune"), (54_401, "summary"), (62_000, "summary")]
)
def test_d_a_prune_alone_is_accepted_only_at_or_below_the_target(ending, tokens, mode) -> None:
    session, summarizer = ending("runway", tokens)
    event = session.status().last_compaction
    assert event.mode == mode
    assert len(summarizer.requests) == (mode == "summary"), "48,000: no model call; 62,000: in the same event"
    assert session.status().compaction_count == 1
    assert event.after == tokens if mode == "prune" else event.after < 54_400


@pytest.mark.parametrize(("tokens", "mode"), [(62_000, "prune"), (63_999, "prune"), (64_000, "summary")])
def test_d_prune_naive_has_no_runway_rule(ending, tokens, mode) -> None:
    session, _ = ending("prune-naive", tokens)
    assert session.status().last_compaction.mode == mode


def test_d_threshold_does_not_prune(opened, loop, faithful, compacted) -> None:
    session = opened(loop(54, lines=90), policy="threshold", summarizer=ScriptedSummarizer(faithful))
    session.prepare()
    assert compacted(session).mechanisms == ("summarize",)


# What is touched


def test_d_only_the_middle_is_touched(opened, loop, told, faithful) -> None:
    script = loop(56, lines=90)
    session = opened(script, policy="runway", summarizer=ScriptedSummarizer(faithful))
    session.prepare()
    assert session.view()[:4] == told(script)[:4]
    assert session.view()[-20:] == told(script)[-20:]


def test_d_history_changes_only_inside_a_compaction(opened, loop, told, faithful, sink) -> None:
    session = opened(policy="runway", window=64_000, summarizer=ScriptedSummarizer(faithful))
    messages = told(loop(60, lines=90))
    sent: list[Any] = []
    for at in range(1, len(messages), 2):
        session.append(messages[max(0, at - 1) : at + 1])
        known = len(sink.compactions)
        request = session.prepare().as_openai()["messages"]
        if len(sink.compactions) == known:
            assert request[: len(sent)] == sent
        sent = request
    assert sink.compactions
    assert session.history() == messages[: len(session.history())]


def test_d_compression_count_counts_prune_only_events_too(opened, loop) -> None:
    session = opened(loop(60, lines=90), policy="prune-naive")
    session.prepare()
    status = session.status()
    assert (status.last_mode, status.compaction_count, status.totals.prunes) == ("prune", 1, 1)
    assert "1 compaction, the last by prune" in str(status)
