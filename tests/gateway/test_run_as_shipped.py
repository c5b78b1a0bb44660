"""The real clients behind `lowwater run` with no option, compacted with a summary and a recall, cost what the replay of their own logs says."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.cli.wording import amount
from lowwater.core.accounts.figures import costs_of
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import Compaction
from lowwater.core.formats.codec import decode_messages
from lowwater.core.messages import Format
from lowwater.core.stored import Account
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.frame import unframe
from lowwater.core.summary.request import SummaryRequest
from lowwater.core.tokens.counting import rules_for
from lowwater.core.tools import SEARCH
from lowwater.lab.references.uses import uses_of
from lowwater.lab.replay.course_replay import PolicyOutcome
from lowwater.lab.replay.live import SHIPPED, EngineRun, play_with_engine
from lowwater.lab.replay.script import course_for, model_named, script_of, sheet_of
from lowwater.logs.importers import recordings
from lowwater.session.factories import counter_for
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Answer, Call, CallTools, Provider, Say, Seen
from tests.gateway.real_clients import ClaudeCode, Client, Codex
from tests.gateway.scripted_work import DONE, Work, listed_in, text_of, tool_names
from tests.gateway.test_gateway_compaction import bare

pytestmark = [pytest.mark.full, pytest.mark.moves_prefix(reason="rent-or-buy compacts")]

CALLS = 128
"""No compaction is due near the end, where the client's would fall behind it and the replay's before it."""
ASKED = "Find out which part of every module says what it found. Do not change the lexer."
LINES = 'for i in $(seq 1 24); do echo "src/module_{0}/part_$i.py: expected {0}.$i, found none of the values that were read before"; done; w=ends; echo "module {0} $w with more values than it began with"'
LATER = 30
"""Calls between the first compaction and the recall: the replay removes that result later than the client does, and 8 were not enough."""
SENTENCE = "module 2 ends with more values than it began with"
"""Something that only the second result says; no index has it, because it is no name."""


class Case(Struct, frozen=True, kw_only=True):
    """A client, the model it is given, and where it leaves its logs."""

    made: Callable[[Path], Client]
    model: str
    format: Format
    logs: str


def claude(home: Path) -> Client:
    """Return Claude Code with the model of the case, whose price is known."""
    client = ClaudeCode(home)
    client.options += ["--model", CASES["claude"].model]
    return client


CASES = {
    "claude": Case(made=claude, model="claude-opus-4-5", format="anthropic", logs=".claude/projects"),
    "codex": Case(made=Codex, model="gpt-5.5", format="openai_responses", logs=".codex/sessions"),
}


class Reading(Work):
    """Reads module after module, says what it thinks of each, writes summaries, and recalls once what it is not shown any more."""

    def __init__(self, case: Case) -> None:
        super().__init__(LINES, CALLS)
        self._case = case
        self._longest = 0
        self._compacted_at: int | None = None
        self._to_name = ""
        self.has_searched = False

    def __call__(self, seen: Seen) -> Answer:
        if asks_for_summary(seen):
            return Say(text=self._summary(seen))
        if len(seen.raw) < self._longest and self._compacted_at is None:
            self._compacted_at = self.calls
        is_later = self._compacted_at is not None and self.calls >= self._compacted_at + LATER
        if is_later and not self.has_searched and SEARCH in tool_names(seen):
            self.has_searched, self._to_name = True, f'I look at "{SENTENCE}" again. '
            return CallTools(calls=(Call(name=SEARCH, arguments={"query": SENTENCE}),))
        self._longest = max(len(seen.raw), self._longest)
        answer = super().__call__(seen)
        if not isinstance(answer, CallTools):
            return answer
        named, self._to_name = self._to_name, ""
        thought = (
            f"Part {self.calls} of the modules does not say which of its values were read by the one before it, so that I go on "
            f"with the reader of the next module and compare what it expected with what number {self.calls + 7} has found. "
        )
        return CallTools(calls=answer.calls, text=named + thought * 3)

    def _summary(self, seen: Seen) -> str:
        """Return what the stand-in of replays would write, which updates the summary before it."""
        format = self._case.format
        messages = decode_messages([msgspec.json.encode(each) for each in listed_in(seen)[:-1]], format)
        at = next((at for at, each in enumerate(messages) if unframe(each.text) != each.text), None)
        previous = "" if at is None else unframe(messages[at].text)
        since = messages[0 if at is None else at + 1 :]
        room = sheet_of(model_named(self._case.model, load_registry())).summary
        return extract(
            SummaryRequest(messages=tuple(since), previous=previous, max_tokens=room),
            counter_for(self._case.model),
        )


def asks_for_summary(seen: Seen) -> bool:
    """Return whether the gateway asks for a summary on the prefix of the conversation."""
    return "summary" in text_of(listed_in(seen)[-1]).lower()


def bill_of(path: Path) -> tuple[Account, int]:
    store = SqliteStore(path)
    accounts = store.accounts()
    store.close()
    main = max(accounts, key=lambda account: len(account.records))
    return main, sum(costs_of(account).total or 0 for account in accounts)


def replayed(client: Client, case: Case) -> PolicyOutcome:
    """Return the replay of the logs that a client left, as shipped.

    The provider of the test is not at its model's own URL, so that only the session's own model may be asked for summaries.
    """
    recording = max(recordings([client.home / case.logs]), key=lambda each: len(each.messages))
    model, script = model_named(case.model, load_registry()), script_of(recording)
    uses = uses_of(script.messages)
    course = course_for(script, uses, model=model.name, recorded=recording.model)
    run = EngineRun(
        policy="rent-or-buy",
        model=model,
        configuration=replace(SHIPPED, writers=("own",)),
        fixed=course.fixed,
        outputs=tuple(turn.output for turn in course.turns),
    )
    return play_with_engine(script, uses, run)


@pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))
def test_a_real_client_costs_what_the_replay_of_its_log_says(case: Case, tmp_path: Path) -> None:
    client, path = case.made(tmp_path / "home"), tmp_path / "kept.db"
    tokenizer, scale = counter_for(case.model), rules_for(case.model).scale

    @lru_cache(10_000)
    def count(text: str) -> int:
        return round(tokenizer.count(text) * scale)

    script = Reading(case)
    with Provider(script, count=count) as provider:
        said = client.ask_behind_run(ASKED, provider.anthropic_base_url, f"sqlite:///{path}")
        requests = [seen for seen in provider.requests if len(tool_names(seen)) > 4]
        assert provider.refusals == ()
    assert DONE in said
    account, bill = bill_of(path)
    events = [event for event in account.events if isinstance(event, Compaction)]
    asked = [at for at, seen in enumerate(requests) if asks_for_summary(seen)]
    assert asked
    for at in asked:
        before, extended = bare(listed_in(requests[at - 1])), bare(listed_in(requests[at]))
        assert extended[: len(before)] == before, "it extends the request before it, which is in the cache"
    written = [event for event in events if event.summarizer == case.model]
    assert written
    for event in written:
        uncached = cost_of(Usage(uncached=event.summary_prompts), load_registry().find(case.model))
        assert 0 < (event.cost or 0) < (uncached or 0)
    used = [record.recall for record in account.records if record.recall is not None and record.recall.calls]
    assert len(used) == 1
    outcome = replayed(client, case)
    assert (outcome.recall.uses, outcome.recall.one_recall) == (1, 1), (
        "the replay has it recall the same once"
    )
    assert len(events) == outcome.cadence.events
    assert bill == pytest.approx(outcome.total, rel=0.02)
    assert f"{len(account.records)} calls for {amount(bill)}" in said
