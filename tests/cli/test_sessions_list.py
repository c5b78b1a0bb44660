"""`lowwater sessions` and `sessions show`: what is kept, as a person and as a program reads it."""

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowwater import Lowwater
from lowwater.cli.app import app
from lowwater.core.stored import About, Append
from lowwater.errors import BadInput
from lowwater.session.internals import internals
from lowwater.stores.addresses import open_store
from tests.cli.session_store import MODEL, SYSTEM, address, answer, error_of, names, sessions, talk, told


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session that was split, one on a model nobody has priced, and one with an unruly name."""
    store = tmp_path_factory.mktemp("store") / "sessions.db"
    talk(store, "refactor-auth", title="Refactor the auth module")
    library = Lowwater(model=MODEL, store=address(store))
    session = library.session("refactor-auth")
    session.use("claude-sonnet-4-5")
    internals(session).split()
    library.close()
    unpriced = Lowwater(model="nobodys-model", store=address(store))
    other = unpriced.session("unpriced", source="gateway")
    other.prepare([{"role": "user", "content": "hello"}])
    other.record(answer("hi", read=0, model="nobodys-model"))
    unpriced.session("red\x1b[31m\nname", title="日本語の会話").append({"role": "user", "content": "x"})
    unpriced.close()
    return store


@pytest.fixture(params=[80, 120, 160])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def child_of(store: Path) -> str:
    return next(name for name in names(store) if name.startswith("20"))


def test_alone_it_lists_the_newest_first_with_or_without_options(made: Path) -> None:
    listed = told(made)
    assert [row["name"] for row in listed["sessions"]] == names(made)
    assert listed["total"] == 4
    assert told(made, "list") == listed
    assert CliRunner().invoke(app, ["sessions", "--help"]).output.count("lowwater sessions") >= 5


@pytest.mark.parametrize("command", ["list", "show", "export", "import", "delete", "prune"])
def test_the_help_of_every_command_fits_80_columns_and_has_examples(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["sessions", command, "--help"]).output
    assert max(map(len, shown.splitlines())) <= 80
    examples = [line.split() for line in shown.splitlines() if line.startswith(" lowwater sessions")]
    assert len(examples) >= 2
    assert "<bool>" not in shown
    assert "--json" in shown
    assert "--store" in shown


def test_a_shell_is_told_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LOWWATER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "lowwater sessions ")
    monkeypatch.setenv("COMP_CWORD", "2")
    offered = CliRunner().invoke(app, [], prog_name="lowwater").output.split()
    assert {"list", "show", "export", "import", "delete", "prune"} <= set(offered)


def test_a_row_says_what_the_store_says_and_costs_are_sums(made: Path) -> None:
    row = next(row for row in told(made)["sessions"] if row["name"] == "refactor-auth")
    with sqlite3.connect(made) as database:
        turns, cost = database.execute(
            "SELECT count(*), sum(cost) FROM turns JOIN sessions ON session = id WHERE name = 'refactor-auth'"
        ).fetchone()
        compactions, summaries = database.execute(
            "SELECT count(*), sum(cost) FROM compaction_events JOIN sessions ON session = id"
            " WHERE name = 'refactor-auth' AND kind = 'compaction'"
        ).fetchone()
    database.close()
    assert (row["turns"], row["compactions"], row["messages"]) == (turns, compactions, 24) == (12, 1, 24)
    assert row["cost"] == cost + summaries > 0
    assert (row["title"], row["source"]) == ("Refactor the auth module", "cli")
    assert (row["model"], row["ended_because"]) == ("claude-sonnet-4-5", "compression")


def test_a_cost_with_an_unknown_price_in_it_is_unknown(made: Path) -> None:
    rows = {row["name"]: row for row in told(made)["sessions"]}
    assert rows["unpriced"]["cost"] is None
    row = sessions(made).output.partition("unpriced")[2].partition("refactor")[0]
    assert "unknown" in row


def test_a_table_fits_the_terminal_and_says_everything(made: Path, width: int) -> None:
    shown = sessions(made).output
    assert max(map(len, shown.splitlines())) <= width
    for words in ("refactor-auth", "Refactor the auth module", "by compression", "gateway", "日本語の会話"):
        assert words in shown
    assert "\x1b" not in shown


def test_limit_and_source_choose(made: Path) -> None:
    assert [row["name"] for row in told(made, "--source", "gateway")["sessions"]] == ["unpriced"]
    first = told(made, "list", "--limit", "1")
    assert [row["name"] for row in first["sessions"]] == names(made)[:1]
    assert first["total"] == 4
    assert "2 of 4 sessions" in sessions(made, "--limit", "2").output
    assert "No session from nowhere" in sessions(made, "--source", "nowhere").output


def test_an_empty_store_says_so(tmp_path: Path) -> None:
    assert "No session is kept here yet" in sessions(tmp_path / "new.db").output
    assert told(tmp_path / "new.db") == {"total": 0, "sessions": []}
    assert "no session is kept yet" in error_of(sessions(tmp_path / "new.db", "show", "any"))
    assert not (tmp_path / "new.db").exists()


def test_a_damaged_record_costs_one_session_its_cost_and_no_more(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    talk(store, "whole", turns=2)
    talk(store, "damaged", turns=2)
    with sqlite3.connect(store) as database:
        database.execute(
            "UPDATE turns SET body = x'00' WHERE session = (SELECT id FROM sessions WHERE name = 'damaged')"
        )
    database.close()
    done = sessions(store, "--json")
    assert done.exit_code == 0, done.output
    assert "warning: " in done.stderr
    assert "damaged" in done.stderr
    rows = {row["name"]: row["cost"] for row in told(store)["sessions"]}
    assert rows["damaged"] is None
    assert rows["whole"] > 0


def test_show_tells_lineage_models_sizes_and_costs(made: Path) -> None:
    card = told(made, "show", "refactor-auth")
    child = child_of(made)
    assert [each["name"] for each in card["children"]] == [child]
    assert [each["model"] for each in card["models"]] == [MODEL, "claude-sonnet-4-5"]
    assert card["system"] == SYSTEM
    assert card["tools"] == ["bash"]
    assert (card["turns"], card["compactions"], card["checkpoints"]) == (12, 1, 2)
    store = open_store(address(made))
    outline = store.outline("refactor-auth")
    store.close()
    assert card["history"] == {"messages": outline.messages, "tokens": outline.tokens}
    assert card["view"]["messages"] < 24
    assert card["view"]["tokens"] < card["history"]["tokens"]
    assert card["cost"] == next(
        row["cost"] for row in told(made)["sessions"] if row["name"] == "refactor-auth"
    )
    assert card["cadence"]["events"] == 1
    other = told(made, "show", child)
    assert (other["about"]["parent"], other["has_parent"]) == ("refactor-auth", True)
    assert other["about"]["title"] == "Refactor the auth module #2"


def test_show_is_a_page_that_fits(made: Path, width: int) -> None:
    shown = sessions(made, "show", "refactor-auth").output
    assert max(map(len, shown.splitlines())) <= width
    for words in ("continued by", "claude-sonnet-4-5 since", "24 messages", "2 checkpoints", "cadence"):
        assert words in shown
    assert "Rule 6." in shown
    assert "Rule 7." not in shown
    assert "3 lines more" in shown
    assert "Rule 9." in sessions(made, "show", "refactor-auth", "--full").output
    assert "\x1b" not in sessions(made, "show", "red").output


def test_a_system_prompt_among_the_messages_is_shown_too(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    library = Lowwater(model="gpt-6.1-sol", store=address(store))
    library.session("chat").append({"role": "system", "content": "Be brief."})
    library.close()
    assert told(store, "show", "chat")["system"] == "Be brief."


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("refactor-autj", "did you mean “refactor-auth”"),
        ("AUTH MODULE", "did you mean “refactor-auth” or “20"),
        ("zzz", "the newest are “"),
        ("r", "2 sessions begin with “r”: “red␛[31m name”, “refactor-auth”"),
    ],
    ids=["misspelt", "in a title", "nothing like it", "not the only one"],
)
def test_a_name_that_is_none_is_answered_with_those_like_it(made: Path, asked: str, says: str) -> None:
    failed = sessions(made, "show", asked)
    assert isinstance(failed.exception, BadInput)
    assert says in error_of(failed)


def test_the_beginning_of_a_name_is_enough_if_no_other_begins_so(made: Path) -> None:
    assert told(made, "show", "ref")["name"] == "refactor-auth"


def test_a_session_in_which_nothing_happened_yet_is_shown_too(tmp_path: Path) -> None:
    store = tmp_path / "sessions.db"
    opened = open_store(address(store))
    opened.append("empty", 0, Append(about=About(title="Not begun")))
    opened.close()
    assert "Not begun" in sessions(store).output
    assert "never" in sessions(store, "show", "empty").output
    assert told(store, "prune", "--older-than", "1m", "--yes")["deleted"] == []
    assert sessions(store, "export", "empty").stdout == ""
    whole = sessions(store, "export", "empty", "--whole").stdout_bytes
    assert sessions(store, "import", "-", "--name", "copy", data=whole).exit_code == 0
    assert told(store, "show", "copy")["about"]["title"] == "Not begun"
