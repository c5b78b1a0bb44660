"""The store of somebody else's package keeps the contract of every store, outlives kills, and is shared by processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from lowwater import open_store
from lowwater.core.stored import About
from lowwater.errors import DamagedStore, UnusableStore
from lowwater.testing.store_contract import CHECKS, CONCEALING_CHECKS, LASTING_CHECKS, add, said, texts
from tests.session.installed_packages import PATH, add_example, look_again, put_on_path
from tests.stores.killed_writers import shared_by_processes, survives_kills


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example package, installed."""
    add_example(tmp_path / "site")
    put_on_path(monkeypatch, tmp_path / "site", PATH)
    yield
    look_again()


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"jsonl:///{tmp_path / 'kept'}"


def behaviour(check: Any) -> str:
    return str(check.__name__).strip("_")


@pytest.mark.parametrize("check", [*CHECKS, *LASTING_CHECKS], ids=behaviour)
def test_it_keeps_the_contract(check: Any, address: str) -> None:
    check(lambda: open_store(address))


@pytest.mark.parametrize("check", CONCEALING_CHECKS, ids=behaviour)
def test_it_conceals(check: Any, address: str) -> None:
    check(lambda conceal: open_store(address, conceal=conceal))


def test_a_writer_killed_again_and_again_loses_nothing_it_had_committed(address: str) -> None:
    survives_kills(address, 6)


def test_processes_that_share_sessions_lose_nothing(address: str) -> None:
    shared_by_processes(address, processes=4, sessions=2)


def test_what_is_deleted_is_gone_from_the_file_and_a_copy_of_it_stays(address: str, tmp_path: Path) -> None:
    store, other = open_store(address), open_store(address)
    add(store, "s", 0, said("the secret plan"))
    copied = store.copy("s", "t", About(parent="s"))
    add(store, "u", 0, said("a swordfish"))
    secret, trail = store.secret(), store.outline("t")
    other.delete("u")
    store.delete("s")
    file = tmp_path / "kept" / "store.jsonl"
    assert "swordfish" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0, "nobody else may read it"
    again = open_store(address)
    for opened in (store, other, again):
        assert [each.name for each in opened.sessions()] == ["t"]
        assert (texts(opened.read("t").entries), opened.outline("t")) == (["the secret plan"], trail)
        assert opened.secret() == secret
    assert add(again, "s", 0, said("new")) > copied + 1, "versions never come back"
    for opened in (store, other, again):
        opened.close()


def test_a_line_is_json_and_says_what_happened(address: str, tmp_path: Path) -> None:
    store = open_store(address)
    add(store, "s", 0, said("one"))
    store.close()
    drawn, added = map(json.loads, (tmp_path / "kept" / "store.jsonl").read_text().splitlines())
    assert drawn["type"] == "drawn"
    assert (added["type"], added["session"]) == ("added", "s")
    assert added["new"]["entries"][0]["messages"][0]["parts"][0]["text"] == "one"


def test_what_cannot_be_used_is_named(address: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableStore, match="cannot be used"):
        open_store(f"jsonl:///{tmp_path / 'file' / 'kept'}")
    store = open_store(address)
    add(store, "s", 0, said("one"))
    with (tmp_path / "kept" / "store.jsonl").open("a") as file:
        file.write("nonsense\n")
    with pytest.raises(DamagedStore, match=r"store\.jsonl has a line that cannot be read"):
        store.read("s")
    store.close()
