"""A session outlives its process: what one leaves, another goes on with, and two at once lose nothing."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from lowwater.engine.carried import LOCAL, pack, unpack
from lowwater.engine.state import State
from lowwater.errors import UnusableStore
from lowwater.testing.fakes import ScriptedClock
from lowwater.testing.invariants import check_nothing_lost
from lowwater.testing.playing import as_completion, exchanges
from lowwater.testing.sessions import generate_session
from lowwater.values.events import Compaction, Skip
from lowwater.values.settings import CompressionSettings, Settings
from lowwater.values.usage import Usage
from lowwater.wiring.library import Lowwater
from lowwater.wiring.session import Session

MESSAGES: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=83, target_tokens=60_000).as_openai_chat()
]
SETTINGS = Settings(compression=CompressionSettings(protect_last_n=4, max_view_tokens=12_000))


def library(path: Path, **options: Any) -> Lowwater:
    given: dict[str, Any] = {"model": "gpt-6.1-sol", "settings": SETTINGS, **options}
    return Lowwater(store=f"sqlite:///{path}", **given)


def play(session: Session, messages: list[Any], clock: ScriptedClock) -> None:
    for exchange in exchanges(messages):
        clock.advance(20)
        session.append(list(exchange.new))
        session.prepare()
        if exchange.answer is not None:
            used = session.expected_usage()
            billed = Usage(uncached=used.prompt - used.cache_read, cache_read=used.cache_read, output=50)
            session.record(as_completion(exchange.answer, billed))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def test_another_process_goes_on_as_the_one_that_left_would(path: Path) -> None:
    half = len(MESSAGES) // 2
    clocks = ScriptedClock(1_000.0), ScriptedClock(1_000.0)
    stayed = library(path.with_name("stayed.db"), clock=clocks[0]).session("s")
    left = library(path, clock=clocks[1])
    play(stayed, MESSAGES[:half], clocks[0])
    play(left.session("s"), MESSAGES[:half], clocks[1])
    left.close()
    back = library(path, clock=clocks[1]).session("s")
    play(stayed, MESSAGES[half:], clocks[0])
    play(back, MESSAGES[half:], clocks[1])
    assert back.status().compaction_count >= 3
    assert back.view() == stayed.view()
    assert back.history() == stayed.history() == MESSAGES
    assert back.status() == stayed.status()
    assert back.explain() == stayed.explain()
    assert [point.name for point in back.checkpoints()] == [point.name for point in stayed.checkpoints()]
    check_nothing_lost(back.ledger)


def test_rewinding_over_five_compactions_restores_the_bytes_and_so_does_rewinding_that(path: Path) -> None:
    clock = ScriptedClock(1_000.0)
    writing = library(path, clock=clock, policy="threshold")
    session = writing.session("s")
    views = [json.dumps(session.view())]
    for start in range(0, len(MESSAGES), len(MESSAGES) // 6):
        session.append(MESSAGES[start : start + len(MESSAGES) // 6])
        views.append(json.dumps(session.view()))
        session.compress()
    compactions = session.status().compaction_count
    assert compactions >= 5
    now = json.dumps(session.view())
    writing.close()
    again = library(path, clock=clock).session("s")
    for number in range(compactions, 0, -1):
        again.rewind(f"before-compaction-{number}", discard_later=True)
        assert json.dumps(again.view()) == views[number]
    fresh = library(path, clock=clock).session("s")
    assert json.dumps(fresh.view()) == views[1]
    fresh.rewind("before-rewind-1", discard_later=True)
    assert json.dumps(fresh.view()) == now
    assert fresh.history() == MESSAGES


def test_turns_and_events_are_in_the_accounts(path: Path) -> None:
    clock = ScriptedClock(1_000.0)
    lowwater = library(path, clock=clock)
    play(lowwater.session("s"), MESSAGES, clock)
    (account,) = lowwater.store.accounts()
    status = lowwater.session("s").status()
    compactions = [event for event in account.events if isinstance(event, Compaction)]
    assert len(compactions) == status.compaction_count > 0
    assert any(isinstance(event, Skip) for event in account.events)
    assert len(account.records) == status.totals.turns
    assert sum(record.cost or 0 for record in account.records) == status.totals.cost
    assert all(event.price is not None and event.saves is not None for event in compactions)
    first = compactions[0].at
    assert {record.removed for record in account.records if record.at < first} == {0}
    later = [record for record in account.records if record.at > first]
    assert all(r.removed > 0 and r.untouched is not None and r.cost is not None for r in later)
    assert all((r.untouched or 0) > (r.cost or 0) for r in later)


def test_two_libraries_at_once_lose_nothing(path: Path) -> None:
    one, other = library(path).session("s"), library(path).session("s")
    one.append({"role": "user", "content": "first"})
    other.append({"role": "assistant", "content": "second"})
    one.prepare()
    assert [message["content"] for message in one.view()] == ["first", "second"]
    one.append({"role": "user", "content": "third"})
    other.refresh()
    assert other.view() == one.view()


def test_many_threads_with_a_library_each_lose_nothing(path: Path) -> None:
    def write(writer: int) -> None:
        session = library(path).session("shared")
        for number in range(6):
            session.append({"role": "user", "content": f"{writer}:{number}"})
            session.prepare()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [message["content"] for message in library(path).session("shared").history()]
    for writer in range(4):
        mine = [text for text in texts if text.startswith(f"{writer}:")]
        assert mine == [f"{writer}:{number}" for number in range(6)]
    assert len(texts) == 24


def test_a_session_deleted_meanwhile_begins_anew(path: Path) -> None:
    lowwater = library(path)
    session = lowwater.session("s")
    session.append({"role": "user", "content": "gone"})
    library(path).store.delete("s")
    session.append({"role": "user", "content": "new"})
    assert [message["content"] for message in library(path).session("s").history()] == ["new"]


def test_thinking_about_it_writes_nothing(path: Path) -> None:
    lowwater = library(path)
    session = lowwater.session("s")
    session.deliberate()
    session.status()
    assert lowwater.store.sessions() == []


def test_another_model_is_an_entry_and_the_vocabulary_stays(path: Path) -> None:
    session = library(path, model="gpt-6.1-sol").session("s")
    session.append(MESSAGES[:9])
    again = library(path, model="deepseek-v4-pro").session("s")
    assert again.status().model.startswith("deepseek")
    assert again.ledger.vocabulary == session.ledger.vocabulary
    sizes = [numbered.tokens for numbered in session.ledger.messages]
    again.append(MESSAGES[:9])
    assert [numbered.tokens for numbered in again.ledger.messages] == sizes * 2
    as_left = library(path, model="gpt-6.1-sol").session("s", as_left=True)
    assert as_left.status().model.startswith("deepseek")


def test_everything_but_what_is_of_one_turn_is_carried() -> None:
    clock = ScriptedClock(1_000.0)
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, clock=clock).session()
    play(session, MESSAGES, clock)
    state: State = session._kept.state
    fresh = Lowwater(model="gpt-6.1-sol").session()._kept.state
    again = unpack(pack(state), fresh)
    for field in State.__struct_fields__:
        if field not in LOCAL:
            assert getattr(again, field) == getattr(state, field), field


def test_what_another_version_carried_is_left_aside_and_the_ledger_stays(path: Path) -> None:
    clock = ScriptedClock(1_000.0)
    session = library(path, clock=clock).session("s")
    play(session, MESSAGES, clock)
    state = session._kept.state
    assert unpack(b"\x93no such thing", state) is state


def test_a_split_ends_the_session_and_the_child_goes_on(path: Path) -> None:
    lowwater = library(path)
    session = lowwater.session("refactor", title="Refactor auth")
    session.append(MESSAGES)
    session.compress()
    view, history = session.view(), session.history()
    child = session.split()
    assert session.name == child != "refactor"
    assert session.view() == view
    session.append({"role": "user", "content": "go on"})
    session.rewind("before-compaction-1")
    assert session.history()[:-1] == history
    listed = {each.name: each.about for each in lowwater.store.sessions()}
    assert listed["refactor"].ended_because == "compression"
    assert (listed[child].parent, listed[child].title, listed[child].ended_at) == (
        "refactor",
        "Refactor auth #2",
        None,
    )
    grandchild = session.split()
    assert {each.name: each.about for each in lowwater.store.sessions()}[
        grandchild
    ].title == "Refactor auth #3"
    assert library(path).session("refactor").view() == view


def test_with_the_setting_each_compaction_splits(path: Path) -> None:
    compression = CompressionSettings(protect_last_n=4, max_view_tokens=12_000, split=True)
    clock = ScriptedClock(1_000.0)
    lowwater = library(path, clock=clock, settings=Settings(compression=compression))
    session = lowwater.session("s")
    play(session, MESSAGES, clock)
    assert session.history() == MESSAGES
    assert len(lowwater.store.sessions()) == session.status().compaction_count + 1
    lineage = [session.about]
    by_name = {each.name: each.about for each in lowwater.store.sessions()}
    while lineage[-1].parent:
        lineage.append(by_name[lineage[-1].parent])
    assert len(lineage) == len(by_name)


class Diary:
    """Remembers what it was shown before each compaction."""

    def __init__(self) -> None:
        self.shown: list[list[Any]] = []
        self.flushed = 0

    def on_pre_compress(self, messages: Any, /) -> None:
        self.shown.append(list(messages))

    def flush(self) -> None:
        self.flushed += 1


class Broken:
    def on_pre_compress(self, messages: Any, /) -> None:
        raise RuntimeError("no room")


def test_memory_hooks_see_the_view_before_it_is_compacted_and_a_broken_one_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    diary = Diary()
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, hooks=[Broken(), diary]).session()
    session.append(MESSAGES)
    assert session.compress() is not None
    assert diary.shown == [MESSAGES]
    assert diary.flushed == 1
    assert "a memory hook failed" in caplog.text
    assert "no room" not in caplog.text


def test_a_store_that_cannot_be_used_says_so_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(UnusableStore) as told:
        library(tmp_path / "folder.db")
    assert "\n" not in str(told.value)


def test_without_an_address_sessions_are_kept_in_the_users_data_directory(tmp_path: Path) -> None:
    program = (
        "from lowwater import Lowwater\n"
        "s = Lowwater(model='gpt-6.1-sol').session('s')\n"
        "s.append({'role': 'user', 'content': 'hello'})\n"
        "print(len(s.history()))\n"
    )
    env = {key: value for key, value in os.environ.items() if key != "LOWWATER_STORE"}
    env |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    for expected in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == expected
    (file,) = tmp_path.rglob("sessions.db")
    assert file.stat().st_mode & 0o777 == 0o600
