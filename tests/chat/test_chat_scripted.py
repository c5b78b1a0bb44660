"""The built-in script: everything can be tried without a key, and compaction can be seen."""

from pathlib import Path

import pytest

from lowwater.chat.tools import Memory
from lowwater.errors import AnswerFailed, BadInput
from tests.chat.chat_harness import Watched, chat_with


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "README.md").write_text("# A project\nTODO: everything\n")
    return directory


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "gpt-4o-mini"])
@pytest.mark.parametrize(
    ("said", "tools", "told"),
    [
        pytest.param("hello", [], "I am a script", id="anything"),
        pytest.param("look around", ["search", "search", "read_file"], "A project", id="look around"),
        pytest.param("read README.md", ["read_file"], "lines 1-2 of 2", id="read"),
        pytest.param("find TODO", ["search"], "[1 line]", id="find"),
        pytest.param("run echo hi", ["shell"], "[exit code 0]", id="run"),
        pytest.param("write a.txt: some words", ["write_file"], "Wrote 1 line to a.txt", id="write"),
        pytest.param("plan wake up, work", ["todo"], "[>] wake up\n[ ] work", id="plan"),
        pytest.param("remember that tea is hot", ["memory"], "1 note", id="remember"),
        pytest.param("recall script", ["lowwater_search"], "lw:1", id="recall"),
        pytest.param("work for 2 steps", ["read_file", "read_file", "search"] * 2, "2 steps", id="work"),
        pytest.param("count to 12", [], "10 11 12", id="count"),
    ],
)
def test_it_does_what_it_is_told_with_real_tools_in_either_format(
    place: Path, model: str, said: str, tools: list[str], told: str
) -> None:
    watched = Watched()
    chat = chat_with(place, watched, model=model)
    chat.say(said)
    assert [call.name for call, _ in watched.outcomes] == tools
    assert not any(outcome.is_error for _, outcome in watched.outcomes)
    assert told in watched.text + "".join(outcome.text for _, outcome in watched.outcomes)
    chat.close()


def test_long_work_fills_the_window_and_is_compacted_and_the_bill_is_as_foreseen(place: Path) -> None:
    watched = Watched()
    chat = chat_with(place, watched)
    chat.say("work for 60 steps")
    totals = chat.session.status().totals
    assert watched.sink.compactions
    assert totals.cost is not None
    assert totals.cache_read / totals.prompt > 0.8
    assert totals.misjudged / totals.prompt < 0.02
    chat.close()


def test_a_switch_to_a_model_whose_window_is_too_small_compacts_before_the_next_call(place: Path) -> None:
    watched = Watched()
    chat = chat_with(place, watched, model="claude-opus-4-8")
    chat.session.append([{"role": "user", "content": "words " * 1_500} for _ in range(120)])
    chat.say("hello")
    assert watched.sink.compactions == []
    assert chat.session.status().prompt > 128_000
    chat.use("gpt-4o-mini")
    (event,) = watched.sink.compactions
    assert event.after <= chat.session.status().wall
    chat.say("hello again")
    chat.close()


def test_memory_is_flushed_before_a_compaction(place: Path) -> None:
    watched, memory = Watched(), Memory(place.parent / "memory.md")
    chat = chat_with(place, watched, memory=memory)
    chat.say("work for 30 steps")
    memory.tool().run({"action": "add", "note": "the harbour is closed"})
    assert Memory(place.parent / "memory.md").notes == ()
    assert chat.session.compress() is not None
    assert Memory(place.parent / "memory.md").notes == ("the harbour is closed",)
    chat.close()


def test_an_answer_that_is_stopped_is_kept_and_paid_for_as_far_as_it_came(place: Path) -> None:
    class Stopping(Watched):
        def on_text(self, piece: str, /) -> None:
            super().on_text(piece)
            if piece.strip() == "50":
                raise KeyboardInterrupt

    watched = Stopping()
    chat = chat_with(place, watched)
    with pytest.raises(AnswerFailed, match="stopped"):
        chat.say("count to 5000")
    assert "49 50 […]" in str(chat.session.view()[-1]["content"])
    totals = chat.session.status().totals
    assert totals.turns == 1
    assert totals.output < 500
    chat.close()


def test_results_that_it_asked_for_in_another_process_do_not_confuse_it(place: Path, tmp_path: Path) -> None:
    store, watched = f"sqlite:///{tmp_path / 'kept.db'}", Watched()
    chat = chat_with(place, watched, store=store, name="cut", allow=_stop)
    with pytest.raises(KeyboardInterrupt):
        chat.say("run ls")
    chat.close()
    chat.store.close()
    again = chat_with(place, watched, store=store, name="cut")
    again.say("count to 3")
    assert watched.text.endswith("1 2 3")
    again.close()
    again.store.close()


def _stop(_question: str) -> bool:
    raise KeyboardInterrupt


def test_a_model_nobody_knows_is_one_sentence(place: Path) -> None:
    watched = Watched()
    chat = chat_with(place, watched)
    with pytest.raises(BadInput, match="no model is called 'nonsense'"):
        chat.use("nonsense")
    assert chat.session.status().model == "claude-haiku-4-5"
    chat.close()
