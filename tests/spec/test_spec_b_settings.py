"""Specification B: what settings amount to in a session; tests/settings has defaults and ranges, tests/adapters and tests/cli where they can be set."""

from typing import Any

import pytest

from lowwater.core.view import Summary
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, Settings, ToolResultSettings
from lowwater.testing.fakes import ScriptedSummarizer
from lowwater.testing.views import Script


def test_b_an_auto_threshold_follows_growth_and_content_mix(opened) -> None:
    settings = Settings(compression=CompressionSettings(threshold="auto"))
    found = {}
    for kind, growth in (("text", 2_000), ("text", 6_000), ("tools", 6_000)):
        session = opened(policy="runway", model="gpt-4.1", settings=settings)
        assert session.status().threshold == session.status().context // 2
        for turn in range(1, 14):
            script = (
                Script().user("go") if kind == "text" else Script().calls("bash", {"n": turn}, "ok " * 50)
            )
            session.append([message.wire.raw for message in script.messages() if message.wire])
            session.prepare()
            usage = {"prompt_tokens": growth * turn, "completion_tokens": 1}
            answer = {"role": "assistant", "content": "ok"}
            session.record({"choices": [{"message": answer, "finish_reason": "stop"}], "usage": usage})
        found[kind, growth] = session.status().threshold
    assert found["text", 2_000] < found["text", 6_000], "the faster it grows, the later"
    assert found["tools", 6_000] < found["text", 6_000], "tool output can be pruned, so the sooner"


# The numbers of a 200K model


def test_b_at_200k_the_tail_is_20000(opened, loop) -> None:
    settings = Settings(compression=CompressionSettings(protect_last_n=1))
    session = opened(loop(80), policy="threshold", window=200_000, settings=settings)
    assert session.compress() is not None
    items = list(internals(session).ledger.view.items)
    at = next(index for index, item in enumerate(items) if isinstance(item, Summary))
    group = sum(item.tokens for item in items[-2:])
    # Behind the summary stands the newest user message; alignment may have added the call before the first result.
    paid = sum(item.tokens for item in items[at + 3 :])
    assert 20_000 - group < paid <= 20_000


@pytest.mark.parametrize(
    ("window", "steps", "tokens"),
    [(200_000, 170, 10_000), (1_000_000, 330, 12_000), (200_000, 50, 2_000)],
    ids=["5 % of the context", "the cap", "the minimum"],
)
def test_b_a_summary_is_at_most_5_percent_and_12000_and_at_least_2000(
    opened, loop, faithful, window, steps, tokens
) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(steps), policy="threshold", window=window, summarizer=summarizer)
    session.compress()
    assert summarizer.requests[0].max_tokens == tokens


def test_b_a_summary_is_a_fifth_of_what_it_replaces(opened, loop, faithful, summaries) -> None:
    summarizer = ScriptedSummarizer(faithful)
    session = opened(loop(90), policy="threshold", window=200_000, summarizer=summarizer)
    originals = internals(session).ledger.view.items
    session.compress()
    (summary,) = summaries(session)
    replaced = sum(originals[number - 1].tokens for number in summarizer.requests[0].numbers)
    assert summarizer.requests[0].max_tokens == int(0.2 * replaced)
    assert summary.tokens < replaced


# The elide limit


def planned(session: Any) -> set[str]:
    """Return the mechanisms that the last decision was to carry out."""
    return {proposal.mechanism for proposal in session.status().decision.proposals}


def chats(chars: int) -> Script:
    script = Script().system("You are an agent.").user("Go through all of them.")
    for number in range(230):
        said = f"{number}: " + " ".join(f"w{number * 31 + word}" for word in range(chars))
        script.calls("terminal", {"command": f"cat {number}"}, said[:chars])
    return script


@pytest.mark.parametrize(
    ("policy", "chars", "elided"),
    [
        ("prune-naive", 200, False),
        ("prune-naive", 201, True),
        ("runway", 201, True),
        ("hermes-classic", 201, True),
        ("hygiene", 600, False),
        ("hygiene", 601, True),
    ],
)
def test_b_the_elide_limit_is_200_characters_in_the_seed_presets_and_600_elsewhere(
    opened, policy, chars, elided
) -> None:
    session = opened(chats(chars), policy=policy, window=24_000)
    session.prepare(max_tokens=500)
    assert ("elide" in planned(session)) is elided


def test_b_an_elide_limit_the_user_set_to_600_holds_in_the_seed_presets_too(opened) -> None:
    settings = Settings(tool_results=ToolResultSettings(elide_limit_chars=600))
    session = opened(chats(400), policy="prune-naive", window=24_000, settings=settings)
    session.prepare(max_tokens=500)
    assert planned(session) == {"summarize", "squeeze"}, "what does not fit is made to, but nothing is elided"
