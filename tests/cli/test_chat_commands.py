"""Each slash command of `lowwater chat`, on a real session that was compacted."""

from pathlib import Path

import pytest
from rich.console import Console

from lowwater.chat.chat import Chat
from lowwater.cli.chat import COMMANDS, Leave, read_command, run_command, suggestions
from lowwater.errors import BadInput
from tests.chat.chat_harness import Watched, chat_with


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def chat(tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setenv("COLUMNS", "90")
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "README.md").write_text("# The harbour\n")
    talked = chat_with(directory, watched, store=f"sqlite:///{tmp_path / 'kept.db'}", name="first")
    talked.say("read README.md")
    return talked


@pytest.fixture
def long_chat(chat: Chat) -> Chat:
    chat.say("work for 25 steps")
    return chat


def shown(chat: Chat, line: str) -> str:
    """What a command shows, on a terminal of 90 columns."""
    command = read_command(line)
    assert command is not None
    console = Console(width=90, highlight=False, no_color=True)
    with console.capture() as captured:
        for block in run_command(chat, *command):
            console.print(block)
    lines = captured.get()
    assert max(map(len, lines.splitlines()), default=0) <= 90
    return lines


def test_status_has_window_turns_and_cost(long_chat: Chat) -> None:
    said = shown(long_chat, "/status")
    for word in (
        "first",
        "claude-haiku-4-5",
        "window",
        "threshold and wall",
        "28 with",
        "cost",
        "efficiency",
    ):
        assert word in said


def test_commands_that_need_something_say_so_before_anything_was_said(
    tmp_path: Path, watched: Watched
) -> None:
    fresh = chat_with(tmp_path, watched)
    assert "Nothing was said yet" in shown(fresh, "/status")
    assert "Nothing was said yet" in shown(fresh, "/efficiency")
    assert "No session is kept yet" in shown(fresh, "/sessions")
    assert "There is none yet" in shown(fresh, "/checkpoints")
    assert "Nothing can be compacted" in shown(fresh, "/compress")
    with pytest.raises(BadInput, match="no compaction to undo"):
        shown(fresh, "/rewind")
    with pytest.raises(BadInput, match="no other session"):
        shown(fresh, "/resume")


def test_context_shows_what_fills_the_window_as_a_bar_that_adds_up(long_chat: Chat) -> None:
    said = shown(long_chat, "/context")
    tokens = int(said.split(" tokens")[0].replace(",", ""))
    prompt = long_chat.session.status().prompt
    assert abs(tokens - prompt) < 0.05 * prompt
    assert "█" in said
    assert "tool results" in said
    assert "read_file" in said


def test_compress_says_what_it_did_and_rewind_takes_it_back(long_chat: Chat, watched: Watched) -> None:
    before, view = long_chat.session.status().prompt, long_chat.session.view()
    assert "/rewind takes it back" in shown(long_chat, "/compress the harbour")
    assert long_chat.session.status().prompt < before
    assert watched.sink.compactions[-1].because.code == "by-hand"
    assert "before-compaction-1" in shown(long_chat, "/checkpoints")
    said = shown(long_chat, "/rewind")
    assert "Rewound to before-compaction-1" in said
    assert long_chat.session.view() == view
    assert "/rewind before-rewind-1 takes it back" in said
    shown(long_chat, "/rewind before-rewind-1")
    assert long_chat.session.view() != view


def test_a_checkpoint_gets_a_name_and_can_be_gone_back_to_by_its_number(long_chat: Chat) -> None:
    assert "tests-pass" in shown(long_chat, "/checkpoints tests-pass")
    shown(long_chat, "/compress")
    assert "Rewound to tests-pass" in shown(long_chat, "/rewind 1")
    with pytest.raises(BadInput, match="no checkpoint “nowhere”"):
        shown(long_chat, "/rewind nowhere")


def test_recall_by_words_by_handle_and_by_range(chat: Chat) -> None:
    assert "lw:3" in shown(chat, "/recall harbour")
    assert "# The harbour" in shown(chat, "/recall lw:3")
    assert "4 pieces" in shown(chat, "/recall lw:1-4")
    assert "No message has any of these words" in shown(chat, "/recall zeppelin")
    with pytest.raises(BadInput, match="nothing to look for"):
        shown(chat, "/recall")
    with pytest.raises(BadInput, match="no message lw:99"):
        shown(chat, "/recall lw:99")


def test_model_switches_everything_and_says_what_holds_now(chat: Chat) -> None:
    assert "claude-haiku-4-5 answers · window 200K" in shown(chat, "/model")
    assert "gpt-4o-mini answers · window 128K, threshold 112K" in shown(chat, "/model gpt-4o-mini")
    chat.say("read README.md")
    assert chat.session.status().model == "gpt-4o-mini"
    with pytest.raises(BadInput, match="no model is called"):
        shown(chat, "/model no-such-thing")
    assert chat.session.status().model == "gpt-4o-mini"


def test_sessions_new_and_resume(chat: Chat, watched: Watched) -> None:
    said = shown(chat, "/new")
    second = chat.session.name
    assert second in said
    assert second != "first"
    chat.say("hello")
    listed = shown(chat, "/sessions")
    assert "first" in listed
    assert second in listed
    assert "read README.md" in listed
    assert "Going on with first: 4 of 4 messages in view" in shown(chat, "/resume first")
    assert f"Going on with {second}" in shown(chat, "/resume")
    with pytest.raises(BadInput, match="no session “third”"):
        shown(chat, "/resume third")
    assert chat.session.name == second


def test_efficiency_is_that_of_all_sessions(long_chat: Chat) -> None:
    shown(long_chat, "/new")
    long_chat.say("hello")
    said = shown(long_chat, "/efficiency")
    assert "2 sessions" in said
    assert "claude-haiku-4-5" in said


def test_explain_says_why(long_chat: Chat) -> None:
    assert "On sale" in shown(long_chat, "/explain")


def test_help_lists_every_command(chat: Chat) -> None:
    said = shown(chat, "/help")
    for name in COMMANDS:
        assert f"/{name}" in said


def test_quit_leaves_and_a_command_that_is_none_is_a_hint(chat: Chat) -> None:
    with pytest.raises(Leave):
        shown(chat, "/quit")
    with pytest.raises(BadInput, match="did you mean /status"):
        shown(chat, "/stauts")
    with pytest.raises(BadInput, match="/help lists them"):
        shown(chat, "/")


@pytest.mark.parametrize("text", ["/etc/hosts is what?", "hello /status", "what is /status"])
def test_a_path_or_a_slash_in_a_sentence_is_no_command(text: str) -> None:
    assert read_command(text) is None


def test_commands_and_what_follows_them_can_be_completed(long_chat: Chat) -> None:
    shown(long_chat, "/compress")
    assert [each.text for each in suggestions(long_chat, "/co")] == ["/context", "/compress"]
    assert [each.text for each in suggestions(long_chat, "/model claude-haiku-4")] == ["claude-haiku-4-5"]
    assert [each.text for each in suggestions(long_chat, "/rewind bef")] == ["before-compaction-1"]
    assert [each.text for each in suggestions(long_chat, "/resume f")] == ["first"]
    assert suggestions(long_chat, "hello /co") == []


def test_summary_shows_what_stands_and_takes_the_users_own(long_chat: Chat, watched: Watched) -> None:
    shown(long_chat, "/compress")
    standing = shown(long_chat, "/summary")
    assert "Written by" in standing
    assert "It stands for lw:" in standing
    assert "/summary TEXT replaces it" in standing
    said = shown(long_chat, "/summary We looked at the harbour, and nothing is left to do there.")
    assert "Written by you" in said
    assert "/rewind takes it back" in said
    assert "nothing is left to do there" in shown(long_chat, "/summary")
    shown(long_chat, "/rewind")
    assert "nothing is left to do there" not in shown(long_chat, "/summary")


def test_without_a_summary_the_chat_says_so(chat: Chat) -> None:
    assert "There is no summary in view" in shown(chat, "/summary")
    with pytest.raises(BadInput, match="no summary in view"):
        shown(chat, "/summary of my own")
