from pathlib import Path

import pytest

from lowwater.store.memory import MemoryStore
from lowwater.store.sqlite.store import SqliteStore
from lowwater.testing.store_contract import CHECKS, LASTING_CHECKS


def behaviour(check) -> str:
    return str(check.__name__).strip("_")


@pytest.mark.parametrize("check", CHECKS, ids=behaviour)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_store_keeps_the_contract(kind, check, tmp_path: Path):
    check(MemoryStore if kind == "memory" else lambda: SqliteStore(tmp_path / "store.db"))


@pytest.mark.parametrize("check", LASTING_CHECKS, ids=behaviour)
def test_sqlite_lasts(check, tmp_path: Path):
    check(lambda: SqliteStore(tmp_path / "store.db"))
