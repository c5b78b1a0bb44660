"""A client's own call for a summary: it is billed with its conversation, and is no part of it."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from lowwater.core.accounts.figures import costs_of
from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import decode_response
from lowwater.core.stored import Account
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.stores.sqlite.store import SqliteStore
from lowwater.testing.provider import Say, Seen
from tests.gateway.conftest import MODEL, Starting, Through, eventually

WORK = "The reader of files reads a line twice after a retry, and its lexer is to be left alone. " * 40
SUMMARY = "<summary>\nThe defect is in src/reader.py, where a line is read twice.\n</summary>"
CLAUDE = "Your task is to create a detailed summary of the conversation so far."
CODEX = "You are performing a CONTEXT CHECKPOINT COMPACTION."
MODELS = {"/v1/messages": MODEL, "/v1/responses": "gpt-5.2"}
BOTH = pytest.mark.parametrize("path", MODELS, ids=["as Claude Code", "as Codex"])


def answers(seen: Seen) -> Say:
    asks = CLAUDE.encode() in seen.raw or CODEX.encode() in seen.raw
    return Say(text=SUMMARY if asks else f"Well, {len(seen.raw)}. {WORK}")


class Client:
    """Talks as a client does that keeps its whole list and compacts by itself."""

    def __init__(self, through: Through, path: str) -> None:
        self.through, self.path = through, path
        self.listed: list[Any] = []

    def says(self, text: str) -> bytes:
        """Say something and keep the answer."""
        self.listed.append({"role": "user", "content": text})
        answer = self._post(self.listed)
        kept = answer.get("output") or [{"role": "assistant", "content": answer["content"]}]
        self.listed += kept
        return self._last

    def asks_for_a_summary(self, more: str = "") -> bytes:
        """Ask for a summary of everything; the list stays as it is."""
        question = CLAUDE if self.path == "/v1/messages" else CODEX
        self._post([*self.listed, {"role": "user", "content": question + more}])
        return self._last

    def _post(self, listed: list[Any]) -> Any:
        body: dict[str, Any] = {"model": MODELS[self.path]}
        if self.path == "/v1/messages":
            system = [{"type": "text", "text": "You work.", "cache_control": {"type": "ephemeral"}}]
            body |= {"max_tokens": 900, "system": system, "messages": listed}
        else:
            body |= {"instructions": "You work.", "input": listed, "store": False}
        answer = self.through.post(body, self.path, authorization="Bearer sk-one")
        assert answer.status_code == 200, answer.text
        self._last = answer.content
        return answer.json()


def account_of(through: Through) -> Account:
    (account,) = through.store.accounts()
    return account


def opened(through: Through, path: str) -> Session:
    """The session as another process finds it."""
    name = through.store.sessions()[0].name
    return Lowwater(model=MODELS[path], store=through.store).session(name)


@BOTH
def test_what_a_clients_own_summary_consumed_is_in_the_accounts(
    start: Starting, path: str, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "kept.db")
    through = start(answers, store=store)
    client = Client(through, path)
    client.says("Find the defect. " + WORK)
    before, status = account_of(through), opened(through, path).status()
    used = decode_response(client.asks_for_a_summary()).usage
    after, later = account_of(through), opened(through, path).status()
    assert used is not None
    assert [record.usage for record in after.records] == [before.records[0].usage, used]
    assert (costs_of(after).total or 0) > (costs_of(before).total or 0) > 0
    assert later.totals.cost == costs_of(after).total
    assert later.totals.prompt == status.totals.prompt + used.prompt
    assert later.totals.output == status.totals.output + used.output
    assert (later.history, after.session.messages) == (status.history, before.session.messages)
    store.close()


@BOTH
def test_the_metrics_count_it(start: Starting, path: str) -> None:
    through = start(answers)
    client = Client(through, path)
    client.says("Find the defect.")
    client.asks_for_a_summary()
    counted = f'lowwater_turns_total{{model="{MODELS[path]}"}} 2.0'
    assert eventually(lambda: counted in httpx2.get(through.url + "/metrics").text)


@BOTH
def test_the_conversation_goes_on_as_foreseen(start: Starting, path: str) -> None:
    through = start(answers)
    client = Client(through, path)
    for number in range(4):
        client.says(f"Find defect {number}. " + WORK)
    client.asks_for_a_summary()
    client.says("Go on.")
    *_, asked, last = account_of(through).records
    assert asked.expected is None, "nobody foresaw that call"
    assert last.expected is not None
    assert last.usage is not None
    # The question's call may have left more in the cache than was known, and never less.
    read = last.usage.cache_read
    assert 0.8 * read <= last.expected.cache_read <= read
    assert SUMMARY not in str(internals(opened(through, path)).ledger.messages[-2:])


def test_a_question_for_a_summary_that_is_too_long_at_first_is_no_part_of_the_conversation_either(
    start: Starting,
) -> None:
    through = start(answers, default_context=9_000)
    client = Client(through, "/v1/messages")
    for number in range(4):
        client.says(f"Find defect {number}. " + WORK)
    before = opened(through, client.path)
    refused = sum(seen.refusal is not None for seen in through.provider.requests)
    client.asks_for_a_summary("Nothing else: " + WORK * 3)
    assert sum(seen.refusal is not None for seen in through.provider.requests) == refused + 1
    after = opened(through, client.path)
    assert [each.message.text for each in internals(after).ledger.messages] == [
        each.message.text for each in internals(before).ledger.messages
    ]
    assert after.status().totals.turns == before.status().totals.turns + 1
    assert internals(after).expected_usage == Usage(), "no call is under way"
