"""A session outlives its process: what one leaves, another goes on with, and two at once lose nothing."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lowwater.adapters.models import load_registry
from lowwater.adapters.tokenizer import tokenizer_for
from lowwater.core.api_calls import Usage
from lowwater.core.costs.prices import cost_of
from lowwater.core.events import Compaction, Skip
from lowwater.core.formats.codec import as_completion
from lowwater.core.summary.extractive import extract
from lowwater.core.summary.request import SummaryRequest, Written
from lowwater.core.turns.state import State
from lowwater.core.turns.state_storage import LOCAL, pack_state, unpack_state
from lowwater.errors import BadInput, DeletedSession, UnusableStore
from lowwater.protocols import Store
from lowwater.session.internals import internals
from lowwater.session.library import Lowwater
from lowwater.session.session import Session
from lowwater.settings import CompressionSettings, Settings
from lowwater.testing.exchanges import exchanges
from lowwater.testing.fakes import ScriptedClock, ScriptedSummarizer
from lowwater.testing.invariants import check_nothing_lost
from lowwater.testing.legality import refusal_of
from tests.generated import generate_session

MESSAGES: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=83, target_tokens=60_000).as_openai_chat()
]
LONGER: list[Any] = [
    json.loads(raw) for raw in generate_session("coding", seed=84, target_tokens=120_000).as_openai_chat()
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
            billed = replace(internals(session).expected_usage, output=50)
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
    check_nothing_lost(internals(back).ledger)


def test_two_processes_by_turns_decide_as_one_alone_would(path: Path) -> None:
    clocks = ScriptedClock(1_000.0), ScriptedClock(1_000.0)
    alone = library(path.with_name("alone.db"), clock=clocks[0], settings=Settings()).session("s")
    both = [library(path, clock=clocks[1], settings=Settings()).session("s") for _ in range(2)]
    rests = 0
    for turn, exchange in enumerate(exchanges(LONGER)):
        took = [*exchange.new, *([exchange.answer] if exchange.answer is not None else [])]
        both[turn % 2].refresh()
        play(alone, took, clocks[0])
        play(both[turn % 2], took, clocks[1])
        decisions = [each._shared.state.decision for each in (alone, both[turn % 2])]
        decided = [each.because.code for each in decisions if each is not None]
        assert decided[0] == decided[1], turn
        rests += decided[0] == "rent-rests"
    assert rests > 10
    assert alone.status().compaction_count > 0
    assert both[(turn + 1) % 2].view() != alone.view()
    both[(turn + 1) % 2].refresh()
    assert both[0].view() == both[1].view() == alone.view()


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


def test_untouched_is_what_the_session_costs_when_nothing_is_compacted(path: Path) -> None:
    clocks = ScriptedClock(1_000.0), ScriptedClock(1_000.0)
    compacted, never = (
        library(path, clock=clocks[0]),
        library(path.with_name("never.db"), clock=clocks[1], policy="never", settings=Settings()),
    )
    play(compacted.session("s"), MESSAGES, clocks[0])
    play(never.session("s"), MESSAGES, clocks[1])
    (account,), (whole,) = compacted.store.accounts(), never.store.accounts()
    assert compacted.session("s").status().compaction_count > 3
    told = sum(record.untouched or 0 for record in account.records)
    real = sum(record.cost or 0 for record in whole.records)
    assert told == pytest.approx(real, rel=0.03)


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


def test_a_session_deleted_meanwhile_is_not_begun_anew_by_itself(path: Path) -> None:
    session = library(path).session("s")
    session.append({"role": "user", "content": "gone"})
    library(path).store.delete("s")
    for _ in range(2):
        with pytest.raises(DeletedSession, match="deleted meanwhile"):
            session.append({"role": "user", "content": "lost?"})
    session.refresh(anew=True)
    session.append({"role": "user", "content": "new"})
    assert [message["content"] for message in library(path).session("s").history()] == ["new"]


def test_one_deleted_and_begun_again_by_another_process_is_followed(path: Path) -> None:
    session = library(path).session("s")
    session.append(MESSAGES[:9])
    other = library(path)
    other.store.delete("s")
    other.session("s").append({"role": "user", "content": "theirs"})
    session.prepare()
    assert [message["content"] for message in session.history()] == ["theirs"]


class Failing:
    """A store that fails when it is asked for messages, once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        if name in ("messages", "entries") and self.fails:
            self.fails = False
            raise UnusableStore("the disk is gone for a moment")
        return getattr(self._store, name)


def test_a_store_that_fails_while_catching_up_costs_no_message(path: Path) -> None:
    first = library(path).session("s")
    first.append(MESSAGES[:40])
    first.compress()
    first.checkpoint("c")
    first.append(MESSAGES[40:60])
    first.compress()
    failing = Failing(library(path).store)
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, store=cast("Store", failing)).session("s")
    other = library(path).session("s")
    other.rewind("c")
    other.append({"role": "assistant", "content": "from the other"})
    failing.fails = True
    with pytest.raises(UnusableStore):
        session.append({"role": "user", "content": "1"})
    session.append({"role": "user", "content": "2"})
    told = [message["content"] for message in library(path).session("s").history()[-2:]]
    assert told == ["from the other", "2"]
    assert session.view() == library(path).session("s").view()


@pytest.mark.parametrize("how", ["edits", "rewinds", "rewinds that discard"])
def test_hundreds_of_ways_back_can_still_be_opened(path: Path, how: str) -> None:
    session = library(path).session("s")
    session.append(MESSAGES[:5])
    session.checkpoint("c")
    said: list[Any] = []
    for number in range(200):
        user = {"role": "user", "content": f"question {number}"}
        if how == "edits":
            internals(session).sync_messages(
                [*MESSAGES[:5], *said, {"role": "user", "content": f"reminder {number}"}]
            )
            said.append(user)
        else:
            session.append(user)
            session.rewind("c", discard_later=how == "rewinds that discard")
    again = library(path).session("s")
    assert again.view() == session.view()
    assert internals(again).ledger.view.original_tokens == internals(session).ledger.view.original_tokens


def test_a_last_message_that_changes_every_turn_undoes_no_compaction() -> None:
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, policy="threshold").session()
    history: list[Any] = list(MESSAGES[:-1])
    for number in range(5):
        reminder = {"role": "user", "content": f"<env>{number}</env>"}
        session.prepare([*history, reminder])
        texts = json.dumps(session.view())
        assert f"<env>{number}</env>" in texts
        assert f"<env>{number - 1}</env>" not in texts
        history += [{"role": "user", "content": f"go on {number}"}, {"role": "assistant", "content": "Yes."}]
    assert session.status().compaction_count == 1
    names = [point.name for point in session.checkpoints()]
    assert [name for name in names if "compaction" in name] == ["before-compaction-1"]


def test_an_answer_is_booked_by_the_call_it_belongs_to(path: Path) -> None:
    one, other = library(path).session("s"), library(path, model="claude-opus-5-5").session("s")
    one.append({"role": "user", "content": "hello"})
    request = one.prepare()
    other.refresh()
    other.append({"role": "user", "content": "word " * 20_000})
    other.prepare()
    one.record(
        as_completion({"role": "assistant", "content": "yes"}, Usage(uncached=request.tokens, output=5))
    )
    (account,) = library(path).store.accounts()
    (record,) = account.records
    assert record.model == "gpt-6.1-sol"
    other.refresh()
    assert other.prepare().tokens > 19_000


class Appending:
    def __init__(self) -> None:
        self.session: Session | None = None
        self.told = 0

    def on_pre_compress(self, messages: Any, /) -> None:
        self.told += 1
        assert self.session is not None
        self.session.append({"role": "user", "content": "remember this"})
        self.session.prepare()


def test_a_hook_may_change_the_session_it_is_told_of() -> None:
    hook = Appending()
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, hooks=[hook]).session()
    hook.session = session
    session.append(MESSAGES)
    session.compress()
    assert session.status().compaction_count == 1
    assert hook.told == 1
    assert session.history()[-1]["content"] == "remember this"


def test_a_summary_paid_for_in_vain_is_booked(path: Path) -> None:
    other = library(path)

    def meddling(request: SummaryRequest) -> Written:
        other.session("s", as_left=True).append({"role": "user", "content": "meanwhile"})
        usage = Usage(uncached=1_000_000, output=1_000)
        return Written(
            text=extract(request, tokenizer_for("o200k")), by="m", model="gpt-6.1-sol", usage=usage
        )

    writer = ScriptedSummarizer(*[meddling] * 3)
    session = library(path, summarizer=writer).session("s")
    session.append(MESSAGES)
    event = session.compress()
    assert event is not None
    each = cost_of(Usage(uncached=1_000_000, output=1_000), load_registry().find("gpt-6.1-sol"))
    assert each is not None
    assert session.status().totals.summary_cost == event.cost == 3 * each


def test_thinking_or_refreshing_in_between_costs_no_turn(path: Path) -> None:
    asked = 0

    def counting(request: SummaryRequest) -> Written:
        nonlocal asked
        asked += 1
        internals(session).dry_run()
        session.refresh()
        return Written(text=extract(request, tokenizer_for("o200k")), by="m")

    session = library(path, summarizer=ScriptedSummarizer(*[counting] * 3)).session("s")
    session.append(MESSAGES)
    assert session.compress() is not None
    assert asked == 1


def test_what_two_tell_of_a_session_is_both_kept(path: Path) -> None:
    one, other = library(path).session("s"), library(path).session("s")
    one.append(MESSAGES[:3])
    other.refresh()
    internals(other).describe(title="T")
    internals(one).describe(source="web")
    assert (internals(one).about.title, internals(one).about.source) == ("T", "web")


def test_a_name_that_lowwater_gives_itself_cannot_be_given(path: Path) -> None:
    session = library(path).session("s")
    session.append(MESSAGES[:3])
    with pytest.raises(BadInput, match="its own"):
        session.checkpoint("before-compaction-1")
    with pytest.raises(BadInput, match="position 99"):
        session.rewind(99)
    for name in ("", " "):
        with pytest.raises(BadInput, match="needs a name"):
            library(path).session(name)


def test_thinking_about_it_writes_nothing(path: Path) -> None:
    lowwater = library(path)
    session = lowwater.session("s")
    internals(session).dry_run()
    session.status()
    assert lowwater.store.sessions() == []


def test_another_model_is_an_entry_and_the_vocabulary_stays(path: Path) -> None:
    session = library(path, model="gpt-6.1-sol").session("s")
    session.append(MESSAGES[:9])
    again = library(path, model="deepseek-v4-pro").session("s")
    assert again.status().model.startswith("deepseek")
    assert internals(again).ledger.vocabulary == internals(session).ledger.vocabulary
    sizes = [numbered.tokens for numbered in internals(session).ledger.messages]
    again.append(MESSAGES[:9])
    assert [numbered.tokens for numbered in internals(again).ledger.messages] == sizes * 2
    as_left = library(path, model="gpt-6.1-sol").session("s", as_left=True)
    assert as_left.status().model.startswith("deepseek")


def test_everything_but_what_is_of_one_turn_is_carried() -> None:
    clock = ScriptedClock(1_000.0)
    session = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, clock=clock).session()
    play(session, MESSAGES, clock)
    state: State = session._shared.state
    fresh = Lowwater(model="gpt-6.1-sol").session()._shared.state
    again = unpack_state(pack_state(state), fresh).state
    for field in State.__struct_fields__:
        if field not in LOCAL:
            assert getattr(again, field) == getattr(state, field), field


def test_a_policy_is_found_by_the_name_it_had_when_it_was_stored() -> None:
    state: State = Lowwater(model="gpt-6.1-sol", policy="threshold").session()._shared.state
    stored = pack_state(replace(state, policy="summary-only"))
    assert unpack_state(stored, state).state.policy == "threshold"


def test_a_state_that_is_no_state_is_left_aside_and_reported(path: Path) -> None:
    clock = ScriptedClock(1_000.0)
    session = library(path, clock=clock).session("s")
    play(session, MESSAGES, clock)
    state = session._shared.state
    found = unpack_state(b"\x93no such thing", state)
    assert found.state == state
    assert found.unread == ("all of it (Expected `object`, got `array`)",)


def test_a_split_ends_the_session_and_the_child_goes_on(path: Path) -> None:
    lowwater = library(path)
    session = lowwater.session("refactor", title="Refactor auth")
    session.append(MESSAGES)
    session.compress()
    view, history = session.view(), session.history()
    child = internals(session).split()
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
    grandchild = internals(session).split()
    assert {each.name: each.about for each in lowwater.store.sessions()}[
        grandchild
    ].title == "Refactor auth #3"
    assert library(path).session("refactor", as_left=True).view() == view
    assert library(path).session("refactor").name == grandchild


def test_a_session_that_another_process_split_is_followed(path: Path) -> None:
    one, other = library(path).session("s", title="Fix issue #42"), library(path).session("s")
    one.append(MESSAGES[:9])
    other.refresh()
    child = internals(other).split()
    assert internals(other).about.title == "Fix issue #42 #2"
    one.append({"role": "user", "content": "go on"})
    assert one.name == child
    assert [m["content"] for m in library(path).session("s").history()[-1:]] == ["go on"]


def test_with_the_setting_each_compaction_splits(path: Path) -> None:
    compression = CompressionSettings(protect_last_n=4, max_view_tokens=12_000, split=True)
    clock = ScriptedClock(1_000.0)
    lowwater = library(path, clock=clock, settings=Settings(compression=compression))
    session = lowwater.session("s")
    play(session, MESSAGES, clock)
    assert session.history() == MESSAGES
    assert len(lowwater.store.sessions()) == session.status().compaction_count + 1
    lineage = [internals(session).about]
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


class Hanging:
    """Is told, and waits until it is let go."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.release = threading.Event()

    def on_pre_compress(self, messages: Any, /) -> None:
        self.told.set()
        self.release.wait(30)


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_a_hook_that_hangs_holds_a_turn_no_longer_than_its_deadline(
    colour: str, caplog: pytest.LogCaptureFixture
) -> None:
    hanging, diary = Hanging(), Diary()
    lowwater = Lowwater(model="gpt-6.1-sol", settings=SETTINGS, hooks=[hanging, diary], deadline=0.2)
    session = lowwater.session()
    session.append(MESSAGES)
    start = time.monotonic()
    event = session.compress() if colour == "sync" else asyncio.run(session.acompress())
    seconds = time.monotonic() - start
    try:
        assert event is not None
        assert 0.2 <= seconds < 8
        assert hanging.told.is_set()
        assert diary.shown == [MESSAGES], "those behind it are told all the same"
        assert "not done within the turn's deadline and is left behind: Hanging" in caplog.text
    finally:
        hanging.release.set()


def test_an_anthropic_list_that_begins_with_the_assistant_is_sent_with_a_user_before_it() -> None:
    session = Lowwater(model="claude-sonnet-4-5", settings=SETTINGS, store="memory:").session()
    listed = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "ok"}]},
        {"role": "assistant", "content": "The file is there."},
        {"role": "user", "content": "Read it."},
    ]
    for given in (listed, listed[1:]):
        fields = session.prepare(given).as_anthropic()
        assert [message["role"] for message in fields["messages"]] == ["user", "assistant", "user"]
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, **fields}
        assert refusal_of(body, "anthropic") is None
        assert session.history()[-2:] == listed[1:]
