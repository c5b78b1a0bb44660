from pathlib import Path

import pytest

from lowwater.stores.addresses import open_store
from lowwater.testing.store_contract import CHECKS, CONCEALING_CHECKS, LASTING_CHECKS


def behaviour(check) -> str:
    return str(check.__name__).strip("_")


def address(kind: str, folder: Path) -> str:
    return "memory:" if kind == "memory" else f"sqlite:///{folder}/store.db"


@pytest.mark.parametrize("check", CHECKS, ids=behaviour)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_store_keeps_the_contract(kind, check, tmp_path):
    check(lambda: open_store(address(kind, tmp_path)))


@pytest.mark.parametrize("check", CONCEALING_CHECKS, ids=behaviour)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_store_conceals(kind, check, tmp_path):
    check(lambda conceal: open_store(address(kind, tmp_path), conceal=conceal))


@pytest.mark.parametrize("check", LASTING_CHECKS, ids=behaviour)
def test_sqlite_lasts(check, tmp_path):
    check(lambda: open_store(address("sqlite", tmp_path)))
