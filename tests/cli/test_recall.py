"""`lowwater recall` on a real SQLite file: by words, by handle, in one session and in all."""

from pathlib import Path

import pytest

from lowwater import Lowwater
from lowwater.session.internals import internals
from tests.cli.command_runner import refused, run, shown, told
from tests.cli.compacted_session import MODEL, NAME, converse

OTHER = "move billing"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recall") / "kept.db"
    converse(path)
    library = Lowwater(model=MODEL, store=f"sqlite:///{path}")
    other = library.session(OTHER)
    other.append({"role": "user", "content": "where is the invoice of marker3 \x1b[2J\x07 kept?"})
    other.append({"role": "assistant", "content": "会話の中で請求書を探します"})
    library.close()
    return path


def test_words_find_a_message_that_is_no_longer_shown(store: Path) -> None:
    (found,) = told(store, "recall", NAME, "marker2", "--limit", "1")["found"]
    assert (found["handle"], found["who"], found["session"]) == ("lw:7", "tool result", NAME)
    assert "marker2" in found["excerpt"]
    assert [one["handle"] for one in found["near"]] == ["lw:5", "lw:6", "lw:8"]
    assert found["tokens_with_near"] == found["tokens"] + sum(one["tokens"] for one in found["near"])
    assert "text" not in found


def test_a_person_sees_excerpt_neighbours_and_sizes(store: Path) -> None:
    said = told(store, "recall", NAME, "marker2", "--limit", "1")["found"][0]
    heading, *lines = shown(store, "recall", NAME, "marker2", "--limit", "1").splitlines()
    assert heading == (
        f"lw:7 · tool result · {said['tokens']:,} tokens, {said['tokens_with_near']:,} with what is around it"
    )
    assert lines[0].split()[:1] == ["lw:5"]
    assert lines[1].split()[:4] == ["lw:6", "assistant,", "calls", "read"]
    assert any(line.startswith("    ") and "marker2" in line for line in lines)
    assert lines[-2:] == ["The first one whole:", f"  lowwater recall {NAME} lw:7 --store sqlite:///{store}"]


def test_around_says_how_many_neighbours(store: Path) -> None:
    none = told(store, "recall", NAME, "lw:5", "--around", "0")["found"][0]
    many = told(store, "recall", NAME, "lw:5", "--around", "3")["found"][0]
    assert none["near"] == []
    assert [one["number"] for one in many["near"]] == [2, 3, 4, 6, 7, 8]


def test_a_handle_gives_the_whole_message(store: Path) -> None:
    (found,) = told(store, "recall", NAME, "lw:7")["found"]
    assert found["text"].startswith("marker2 line 0 of part 2")
    assert "line 249 of part 2: value = 498" in found["text"]
    assert "line 249 of part 2: value = 498" in shown(store, "recall", NAME, "lw:7")


def test_a_range_gives_a_line_for_each_message_and_whole_ones_if_wanted(store: Path) -> None:
    title, *lines = shown(store, "recall", NAME, "lw:5-8").splitlines()
    assert title == "lw:5-8 · 4 pieces"
    assert [line.split()[0] for line in lines] == ["lw:5", "lw:6", "lw:7", "lw:8"]
    whole = shown(store, "recall", NAME, "lw:5-8", "--expand")
    assert "line 249 of part 2: value = 498" in whole
    assert shown(store, "recall", NAME, "lw:5-8", "--limit", "2").splitlines()[-1].startswith("2 more: ")
    said = told(store, "recall", NAME, "lw:5-8", "--expand")
    assert [one["handle"] for one in said["messages"]] == ["lw:5", "lw:6", "lw:7", "lw:8"]


def test_the_range_of_a_summary_leads_to_the_summary_and_what_it_was_made_of(store: Path) -> None:
    library = Lowwater(model=MODEL, store=f"sqlite:///{store}")
    items = internals(library.session(NAME, as_left=True)).ledger.view.items
    (sources,) = [item.sources for item in items if not hasattr(item, "number")]
    library.close()
    handle = "lw:" + ",".join(
        f"{each.first}-{each.last}" if each.last > each.first else f"{each.first}" for each in sources
    )
    said = told(store, "recall", NAME, handle)
    assert said["summary"]
    assert said["children"][0]["kind"] == "summary"
    page = shown(store, "recall", NAME, handle)
    assert page.index("\nsummary\n") < page.index("\nmade of\n") < page.index("summary of ")
    below = told(store, "recall", NAME, said["children"][0]["handle"])
    assert below["summary"]
    assert {child["kind"] for child in below["children"]} == {"message"}


def test_all_sessions_are_searched(store: Path) -> None:
    said = told(store, "recall", "--all", "marker3", "--limit", "9")
    assert {each["session"] for each in said["found"]} == {NAME, OTHER}
    page = shown(store, "recall", "--all", "marker3", "invoice")
    assert page.startswith(f"{OTHER} · lw:1 · user · ")
    assert "\n  lowwater recall 'move billing' lw:1 --store " in page


def test_chinese_and_japanese_words_are_found_inside_longer_ones(store: Path) -> None:
    assert told(store, "recall", OTHER, "請求書")["found"][0]["number"] == 2


def test_a_terminal_obeys_nothing_in_a_message(store: Path) -> None:
    page = shown(store, "recall", OTHER, "invoice", "--expand")
    assert "\x1b" not in page
    assert "\x07" not in page
    assert "␛[2J␇" in page
    assert "\x1b[2J" in told(store, "recall", OTHER, "lw:1")["found"][0]["text"]


def test_no_match_is_said_and_no_failure(store: Path) -> None:
    assert shown(store, "recall", NAME, "zeppelin") == "No message has any of these words: zeppelin\n"
    assert told(store, "recall", NAME, "zeppelin")["found"] == []


def test_what_cannot_be_looked_for_is_one_sentence(store: Path) -> None:
    assert refused(store, "recall", NAME).startswith("there is nothing to look for")
    assert refused(store, "recall", NAME, "lw:999") == "there is no message lw:999: the session has 64"
    assert "belongs to one session" in refused(store, "recall", "--all", "lw:7")
    assert refused(store, "recall", "nobody", "x").startswith("there is no session “nobody”")
    assert run(store, "recall").exit_code == 2
