"""The size that people are told of is the one at which a policy really acts."""

import pytest

from lowwater import Lowwater
from lowwater.core.api_calls import Usage
from lowwater.core.decisions import Compact
from lowwater.core.formats.codec import as_message
from lowwater.core.policies.registry import POLICIES, policy_named
from lowwater.core.policies.safety_rules import decide
from lowwater.session.internals import internals
from lowwater.settings import CompressionSettings, OutputSettings, Settings
from lowwater.testing.decision_contexts import example_context, offer
from lowwater.testing.fakes import RecordingSink, ScriptedClock

OFFERS = [offer(name, 40_000) for name in ("elide", "summarize", "leaf", "condense", "summarize_all")]
BY_SIZE = [policy.name for policy in POLICIES if policy.name not in ("rent-or-buy", "guarded")]
"""`rent-or-buy` acts by prices and `guarded` by chunks of raw messages too; below they are asked for their sweep alone."""
SETTINGS = {
    "plain": CompressionSettings(),
    "ceiling": CompressionSettings(max_view_tokens=50_000),
    "hygiene": CompressionSettings(hygiene=True),
}


@pytest.mark.parametrize("compression", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", [*BY_SIZE, "guarded"])
def test_a_prompt_is_compacted_from_that_size_on_and_not_below_it(
    name: str, compression: CompressionSettings
) -> None:
    policy, settings = policy_named(name), Settings(compression=compression)
    floor = policy.preset.threshold_floor
    point = policy.acts_at(example_context(1, compression=compression, floor=floor).limits, settings)
    for tokens in (point.at - 1, point.at, point.at + 1):
        now = example_context(tokens, *OFFERS, compression=compression, floor=floor, outside_tail=0)
        acted = isinstance(decide(now, settings, policy=policy), Compact)
        assert acted is point.is_reached(tokens), (tokens, point)


@pytest.mark.parametrize(
    ("policy", "at", "called"),
    [
        ("never", 184_000, "wall"),
        ("hygiene", 170_000, "hygiene limit"),
        ("guarded", 150_000, "budget's threshold"),
        ("threshold", 100_000, "threshold"),
    ],
)
def test_status_warnings_and_should_compress_speak_of_it(policy: str, at: int, called: str) -> None:
    heard = RecordingSink()
    settings = Settings(output=OutputSettings(quiet=True))
    warned: list[str] = []
    session = Lowwater(
        model="claude-haiku-4-5",
        policy=policy,
        store="memory:",
        sinks=[heard],
        settings=settings,
        clock=ScriptedClock(),
        on_warning=lambda warning: warned.append(warning.sentence),
    ).session("s")
    session.append({"role": "user", "content": "Go on."})
    session.prepare()
    session.record(
        as_message([{"type": "text", "text": "Yes."}], Usage(uncached=int(at * 0.97)), "claude-haiku-4-5")
    )
    session.append({"role": "user", "content": "And now?"})
    session.prepare()
    status = session.status()
    assert (status.threshold, status.acts_at) == (at, called)
    assert f"of {at:,} tokens to the {called} (97 %), level critical" in str(status)
    assert warned[-1].endswith(f"of {at:,} tokens, 97 % of the {called}.")
    assert internals(session).should_compress(at + 1)
    assert not internals(session).should_compress(at - 1)
    assert heard.compactions == []
