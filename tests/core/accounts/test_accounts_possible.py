"""Accounts are never impossible, whatever a provider reports and whoever answers."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.cadence import cadence, turns_before_events
from lowwater.core.accounts.payback import paybacks
from lowwater.core.api_calls import Usage
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import as_message
from lowwater.core.stored import Account
from lowwater.core.summary.request import Written
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.settings import OutputSettings, Settings
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer

MODELS = ("claude-opus-5-5", "claude-haiku-4-5", "gpt-5.5")
LINE = "src/part_{0}.py:{0}: value_{0} = {0} * 31  # as measured\n"
STEPS = st.lists(
    st.tuples(
        st.sampled_from([400, 4_000, 24_000]),
        st.floats(0.05, 1.6),
        st.sampled_from(["", "", "", "compress", "use", "both"]),
        st.sampled_from([0.0, 0.0, 1.0, 900.0]),
    ),
    min_size=3,
    max_size=14,
)


def play(
    library: Lowwater,
    clock: ScriptedClock,
    steps: list[tuple[int, float, str, float]],
    *,
    window: int = 32_000,
) -> Account:
    """Play a session whose provider reports a share of what was counted; calls may share a moment."""
    session = library.session("s")
    session.learn_context_length(window)
    for number, (size, share, then, wait) in enumerate(steps):
        call = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"n": number}}
        text = "".join(LINE.format(number * 1_000 + each) for each in range(size // len(LINE)))
        session.append({"role": "user", "content": f"Look at {number}."})
        request = session.prepare(system="Be exact.")
        prompt = max(1, round(share * request.tokens))
        half = Usage(cache_read=prompt // 2, cache_write=prompt - prompt // 2, output=50)
        session.record(as_message([call], half, internals(session).route.model))
        session.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}],
            }
        )
        prompt = max(1, round(share * session.prepare(system="Be exact.").tokens))
        half = Usage(cache_read=prompt // 2, cache_write=prompt - prompt // 2, output=50)
        session.record(as_message([{"type": "text", "text": "Seen."}], half, internals(session).route.model))
        if then in ("compress", "both"):
            session.compress()
        if then in ("use", "both"):
            session.use(MODELS[(number + 1) % len(MODELS)])
        clock.advance(wait)
    (account,) = library.store.accounts(["s"])
    return account


@settings(max_examples=25)
@given(STEPS, st.sampled_from(["rent-or-buy", "threshold", "runway", "hermes-classic"]))
def test_no_size_is_below_nothing_and_no_cost_either(steps: list[Any], policy: str) -> None:
    clock = ScriptedClock()
    quiet = Settings(output=OutputSettings(quiet=True))
    library = Lowwater(model=MODELS[0], policy=policy, store="memory:", clock=clock, settings=quiet)
    account = play(library, clock, steps)
    for event in account.events:
        if isinstance(event, Compaction):
            assert 0 <= event.after < event.before
            assert 0 < event.reclaimed <= event.before
            assert sum(phase.removed for phase in event.phases) <= event.before
            assert event.cost is None or event.cost >= 0
    for record in account.records:
        assert record.cost is not None
        assert record.untouched is not None
        assert record.untouched >= 0
        assert record.removed >= 0
    for payback in paybacks(account, load_registry()):
        assert payback.rewriting is None or payback.rewriting >= 0
    assert cadence([account]).reclaimed >= 0


def test_after_a_switch_of_models_a_compaction_for_the_old_one_is_no_discount() -> None:
    clock, quiet = ScriptedClock(), Settings(output=OutputSettings(quiet=True))
    library = Lowwater(model=MODELS[0], policy="never", store="memory:", clock=clock, settings=quiet)
    steps = [(24_000, 1.0, "", 10.0)] * 3 + [(4_000, 1.0, "both", 10.0), (400, 1.0, "", 10.0)]
    account = play(library, clock, steps)
    last = account.records[-2]
    assert last.model != account.records[0].model
    assert last.cost is not None
    assert last.untouched is not None
    assert last.untouched > last.cost, "what was removed would have been carried there too"


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_calls_at_one_moment_are_told_apart_by_what_was_stored_first(store: str, tmp_path: Path) -> None:
    clock, quiet = ScriptedClock(), Settings(output=OutputSettings(quiet=True))
    where = "memory:" if store == "memory" else f"sqlite:///{tmp_path / 'store.db'}"
    library = Lowwater(model=MODELS[0], policy="never", store=where, clock=clock, settings=quiet)
    steps = [(6_000, 1.0, "", 0.0)] * 9 + [(400, 1.0, "compress", 0.0)] + [(400, 1.0, "", 0.0)] * 2
    account = play(library, clock, steps, window=120_000)
    (payback,) = paybacks(account, load_registry())
    assert [
        turns
        for event, turns in zip(account.events, turns_before_events(account), strict=True)
        if isinstance(event, Compaction)
    ] == [20]
    assert payback.counted == 3
    assert payback.price is not None
    assert payback.price > 0
    assert payback.turns != 0


def test_what_was_asked_for_a_summary_counts_among_prompts_and_summaries() -> None:
    clock, quiet = ScriptedClock(), Settings(output=OutputSettings(quiet=True))
    used = Usage(uncached=61_500, output=1_600)
    writer = ScriptedSummarizer(
        lambda _: Written(text="## Goal\nLook at everything.\n", by="mine", usage=used, model=MODELS[1])
    )
    library = Lowwater(
        model=MODELS[0], policy="never", store="memory:", clock=clock, settings=quiet, summarizer=[writer]
    )
    account = play(
        library, clock, [(6_000, 1.0, "", 9.0)] * 9 + [(400, 1.0, "compress", 9.0)], window=120_000
    )
    (event,) = [each for each in account.events if isinstance(each, Compaction)]
    calls = len(writer.requests)
    assert calls > 0
    assert event.summary_prompts == calls * 61_500
    prompts = sum(record.usage.prompt for record in account.records if record.usage is not None)
    told = cadence([account]).prompt_and_summary_tokens
    assert told == prompts + calls * 61_500 + event.summary_tokens
