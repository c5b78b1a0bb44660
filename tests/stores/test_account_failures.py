"""Recording never fails a compaction: what cannot be told of a session does not keep it from going on."""

import logging
import sqlite3
from pathlib import Path

import psycopg
import pytest

from lowwater import Lowwater
from lowwater.core.api_calls import Usage
from lowwater.core.formats.codec import as_message
from lowwater.errors import UnusableStore
from lowwater.session.internals import internals

LINES = "\n".join(f"src/part_{line}.py: value_{line} = {line * 31}" for line in range(250))


def drop(address: str, table: str) -> None:
    if address.startswith("postgresql"):
        with psycopg.connect(address) as connection:
            connection.execute(f"DROP TABLE {table}".encode())
    else:
        with sqlite3.connect(address.removeprefix("sqlite:///")) as connection:
            connection.execute(f"DROP TABLE {table}")


def compacted_without(address: str, table: str) -> Lowwater:
    """Play a session that has to be compacted, with one of its store's tables gone half way."""
    library = Lowwater(model="claude-opus-4-8", policy="threshold", store=address)
    session = library.session("s")
    session.learn_context_length(40_000)
    for step in range(14):
        if step == 2:
            drop(address, table)
        session.append({"role": "user", "content": f"Read part {step}."})
        session.prepare(system="Be exact.")
        call = {"type": "tool_use", "id": f"c{step}", "name": "cat", "input": {"part": step}}
        session.record(as_message([call], Usage(), "claude-opus-4-8"))
        result = {"type": "tool_result", "tool_use_id": f"c{step}", "content": f"{step}\n{LINES}"}
        session.append({"role": "user", "content": [result]})
        session.prepare(system="Be exact.")
        session.record(as_message([{"type": "text", "text": "Read."}], Usage(), "claude-opus-4-8"))
    assert internals(session).last_compaction is not None
    return library


@pytest.mark.parametrize("table", ["compaction_events", "turns"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_with_a_table_of_accounts_missing_a_session_is_compacted_and_kept(
    kind: str, table: str, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    address = (
        f"sqlite:///{tmp_path / 'store.db'}"
        if kind == "sqlite"
        else request.getfixturevalue("postgres_address")
    )
    with caplog.at_level(logging.WARNING, "lowwater"):
        library = compacted_without(address, table)
    told = [
        each.getMessage()
        for each in caplog.records
        if "cannot record what its sessions do" in each.getMessage()
    ]
    assert len(told) == 1, "it is said once"
    assert table in told[0]
    history = library.session("s").history()
    again = Lowwater(model="claude-opus-4-8", store=address).session("s")
    assert len(history) == 14 * 4
    assert again.history() == history
    assert internals(again).last_compaction is not None
    with pytest.raises(UnusableStore, match="tables"):
        library.store.accounts(["s"])
