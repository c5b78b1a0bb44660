"""A call beside the conversation is billed, and changes nothing else."""

from typing import Any

from lowwater.adapters.models import load_registry
from lowwater.core.accounts.payback import paybacks
from lowwater.core.api_calls import Usage
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.stores.memory import MemoryStore

MODEL = "claude-haiku-4-5"
REPORTED = {"input_tokens": 500, "cache_read_input_tokens": 9_000, "output_tokens": 200}
SUMMARY = {
    "role": "assistant",
    "content": [{"type": "text", "text": "All of it."}],
    "model": MODEL,
    "stop_reason": "end_turn",
    "usage": REPORTED,
}
USED = Usage(uncached=500, cache_read=9_000, output=200)


def talking(store: MemoryStore, turns: int = 12) -> tuple[Session, list[Any]]:
    """A session with so many turns of long results."""
    settings = Settings(compression=CompressionSettings(protect_first_n=1, protect_last_n=2))
    session = Lowwater(model=MODEL, store=store, settings=settings, policy="never").session("s")
    session.learn_context_length(60_000)
    messages: list[Any] = [{"role": "user", "content": "Find the defect."}]
    for turn in range(turns):
        take_turn(session, messages, turn)
    return session, messages


def take_turn(session: Session, messages: list[Any], turn: int) -> None:
    session.prepare(messages)
    call = {"type": "tool_use", "id": f"t{turn}", "name": "read", "input": {"path": f"src/{turn}.py"}}
    usage = {"input_tokens": session.status().prompt, "output_tokens": 40}
    session.record({**SUMMARY, "content": [call], "stop_reason": "tool_use", "usage": usage})
    result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"line {turn} of the file\n" * 400}
    messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def test_the_ledger_the_belief_and_what_was_learned_stay_as_they_are() -> None:
    session, messages = talking(MemoryStore(), 3)
    session.prepare(messages)
    before, expected, scale = (
        internals(session).ledger,
        internals(session).expected_usage,
        internals(session).scale,
    )
    status = session.status()
    internals(session).record_side_call(SUMMARY, others=(Usage(uncached=70, output=5),))
    after = session.status()
    assert internals(session).ledger is before
    assert (internals(session).expected_usage, internals(session).scale, after.prompt) == (
        expected,
        scale,
        status.prompt,
    )
    assert after.totals.turns == status.totals.turns + 1
    assert after.totals.prompt == status.totals.prompt + USED.prompt + 70
    assert after.totals.output == status.totals.output + USED.output + 5
    assert after.totals.misjudged == status.totals.misjudged
    assert (after.totals.cost or 0) > (status.totals.cost or 0)


def test_another_process_finds_it_in_the_accounts_and_in_the_status() -> None:
    store = MemoryStore()
    session, _ = talking(store, 2)
    internals(session).record_side_call(SUMMARY)
    (account,) = store.accounts()
    assert (account.records[-1].usage, account.records[-1].expected) == (USED, None)
    again = Lowwater(model=MODEL, store=store).session("s").status()
    assert again.totals == session.status().totals
    assert again.totals.cost == sum(record.cost or 0 for record in account.records)


def test_a_compaction_before_it_is_not_taken_for_undone() -> None:
    store = MemoryStore()
    session, messages = talking(store)
    assert session.compress() is not None
    take_turn(session, messages, 12)
    internals(session).record_side_call(SUMMARY)
    (account,) = store.accounts()
    *_, turn, beside = account.records
    assert beside.removed == turn.removed > 0
    assert beside.untouched is not None
    assert beside.cost is not None
    assert beside.untouched > beside.cost, "uncompacted it would have carried more"
    assert [each.over for each in paybacks(account, load_registry())] == ["no"]
