"""Stores and exports that earlier versions wrote are read as they were left, and gone on with as those would have.

`make_stores.py` wrote them and what is known of them; it says how to write them for another version.
"""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lowwater.testing.fakes import ScriptedClock
from tests.stores.make_stores import END, SESSIONS, known, library, next_decision

STORES = Path(__file__).with_name("stores")
DECIDE_ALIKE = ("d7491a8", "form-1")
"""The last version before the state carried its form, and the first that did. They send the same next requests for the same
reasons, at other prices, until a size forces a compaction: what is bought then has changed. What 4270fef would decide has changed altogether."""
VERSIONS = ("4270fef", *DECIDE_ALIKE)


def told(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STORES / f"{version}.json").read_text())
    return found


def unpacked(name: str) -> bytes:
    return gzip.decompress((STORES / name).read_bytes())


@contextmanager
def opened(address: str) -> Iterator[tuple[Any, ScriptedClock]]:
    clock = ScriptedClock(END)
    with closing(library(address, clock)) as lowwater:
        yield lowwater, clock


def sent_because(decisions: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Return of each decision before a forced one what does not depend on how things are priced: the request, the reason, the prompt."""
    forced = (at for at, each in enumerate(decisions) if each["reason"] in {"summary-due", "ceiling-to-last"})
    return [
        (each["request"], each["reason"], each["facts"]["prompt"]) for each in decisions[: next(forced, None)]
    ]


def check(address: str, version: str) -> None:
    expected = told(version)
    with opened(address) as (lowwater, clock):
        found: dict[str, Any] = {name: known(lowwater, name) for name in SESSIONS}
        if version in DECIDE_ALIKE:
            for name in SESSIONS:
                found[name]["next"] = sent_because(next_decision(lowwater, clock, name))
                expected[name]["next"] = sent_because(expected[name]["next"])
        else:
            for name in SESSIONS:
                del expected[name]["next"]
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(expected))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sqlite_file(version: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "sessions.db"
    path.write_bytes(unpacked(f"{version}.db.gz"))
    check(f"sqlite:///{path}", version)
    assert "cannot read" not in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_postgres_dump(version: str, postgres_database: str, caplog: pytest.LogCaptureFixture) -> None:
    name = f"before_{version.replace('-', '_')}".lower()
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    address = postgres_database.replace("/postgres?", f"/{name}?")
    with psycopg.connect(address) as connection:
        connection.execute(unpacked(f"{version}.sql.gz"))
    check(address, version)
    assert "cannot read" not in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
def test_exports(version: str, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'sessions.db'}"
    for name in SESSIONS:
        given = (str(STORES / f"{version}.{name}.jsonl.gz"), "--store", address)
        subprocess.run([sys.executable, "-m", "lowwater", "sessions", "import", *given], check=True)
    check(address, version)


def test_the_stores_hold_everything_that_can_happen_to_a_ledger() -> None:
    for version in VERSIONS:
        kinds = {
            entry["type"]: entry
            for name in SESSIONS
            for line in unpacked(f"{version}.{name}.jsonl.gz").splitlines()
            if (entry := json.loads(line).get("entry"))
        }
        wanted = {"opened", "appended", "model_changed", "compacted", "rewound", "checkpointed"}
        assert wanted <= set(kinds), version
        assert kinds["rewound"]["discard_later"], version
